import { hash } from "node:crypto";
import { expectRoot, textOf } from "./read-xml.ts";
import type { StoreBody, StoreClient } from "./store-client.ts";

/** A blob that the store accepts in parts. It is invisible until it is complete. */
export interface MultipartUpload {
  /** Parts are numbered as they are sent. All but the last have the same size. */
  send(part: StoreBody, signal: AbortSignal): Promise<void>;
  complete(headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>;
  /** Make the store discard the parts. */
  abort(signal: AbortSignal): Promise<void>;
}

/** Some stores assemble a large blob before they answer. */
const COMPLETE_SILENCE_MS = 300_000;

export async function beginUpload(
  client: StoreClient,
  key: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<MultipartUpload> {
  const { root } = await client.ask({ method: "POST", key, query: { uploads: "" }, headers }, signal);
  const uploadId = textOf(expectRoot(root, "InitiateMultipartUploadResult"), "UploadId");
  const tags: string[] = [];
  let parts = 0;
  return {
    async send(body, signal) {
      const number = ++parts;
      const query = { partNumber: `${number}`, uploadId };
      const { headers } = await client.ask({ method: "PUT", key, query, body }, signal);
      if (typeof headers.etag !== "string") throw new Error("The store gave no tag for a part");
      tags[number - 1] = headers.etag;
    },
    async complete(headers, signal) {
      const query = { uploadId };
      const { root } = await client.ask(
        { method: "POST", key, query, headers, body: partList(tags), silenceMs: COMPLETE_SILENCE_MS },
        signal,
      );
      expectRoot(root, "CompleteMultipartUploadResult");
    },
    async abort(signal) {
      await client.ask({ method: "DELETE", key, query: { uploadId } }, signal);
    },
  };
}

function partList(tags: readonly string[]): StoreBody {
  const parts = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${toXmlText(tag)}</ETag></Part>`);
  const xmlns = "http://s3.amazonaws.com/doc/2006-03-01/";
  const list = Buffer.from(`<CompleteMultipartUpload xmlns="${xmlns}">${parts.join("")}</CompleteMultipartUpload>`);
  return { size: list.byteLength, sha256: hash("sha256", list), chunks: [list] };
}

/** A tag is opaque and may contain any characters. */
function toXmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
