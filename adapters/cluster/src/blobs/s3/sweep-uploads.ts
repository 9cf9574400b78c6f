import { decodeName } from "./list-keys.ts";
import { childrenOf, expectRoot, textOf } from "./read-xml.ts";
import type { StoreClient } from "./store-client.ts";
import { hasStatus } from "./store-error.ts";

/** Abort uploads below the client's prefix that began before that time, in milliseconds since 1970. */
export async function sweepUploads(client: StoreClient, before: number, signal: AbortSignal): Promise<void> {
  const query = { uploads: "", "encoding-type": "url", prefix: client.prefix };
  let from: Record<string, string> = {};
  for (;;) {
    const { root } = await client.ask({ method: "GET", query: { ...query, ...from } }, signal);
    const page = expectRoot(root, "ListMultipartUploadsResult");
    const isEncoded = textOf(page, "EncodingType") === "url";
    const toName = (text: string): string => (isEncoded ? decodeName(text) : text);
    for (const upload of childrenOf(page, "Upload")) {
      if (!(Date.parse(textOf(upload, "Initiated")) < before)) continue;
      await abortUpload(client, toName(textOf(upload, "Key")).slice(client.prefix.length), textOf(upload, "UploadId"), signal);
    }
    if (textOf(page, "IsTruncated") !== "true") return;
    from = { "key-marker": toName(textOf(page, "NextKeyMarker")), "upload-id-marker": textOf(page, "NextUploadIdMarker") };
    if (from["key-marker"] === "") throw new Error("The store did not say where its list continues");
  }
}

async function abortUpload(client: StoreClient, key: string, uploadId: string, signal: AbortSignal): Promise<void> {
  try {
    await client.ask({ method: "DELETE", key, query: { uploadId } }, signal);
  } catch (error) {
    // Another process was quicker.
    if (!hasStatus(error, 404)) throw error;
  }
}
