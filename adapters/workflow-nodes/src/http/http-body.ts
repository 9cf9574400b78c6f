import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { ports } from "@portico/core";
import type { HttpInput } from "./http-input.ts";

/** A request's body, and the `content-type` that describes it. */
export interface HttpBody {
  readonly type: string;
  readonly content: Content;
}

/** Bytes in memory, or a file's with the number of bytes. A stream is opened for each request that sends it. */
export type Content = string | Uint8Array | StreamedContent;

/** Bytes that are not held in memory. */
export interface StreamedContent {
  readonly size: number;
  /** The bytes beside the files, one character for each. */
  readonly besideFiles: string;
  open(): Readable;
}

type Part = NonNullable<HttpInput["multipart"]>[number];

/**
 * Undefined without a body. The same input has the same bytes, because a server may compare requests with one `Idempotency-Key`. Throws NodeFailed
 * for a file that the run does not have.
 */
export async function bodyOf(input: HttpInput, files: ports.NodeFiles | undefined): Promise<HttpBody | undefined> {
  const { body, form, multipart, bytes, file } = input;
  if (form) return { type: "application/x-www-form-urlencoded", content: encodeForm(form) };
  if (multipart) return encodeMultipart(await Promise.all(multipart.map((part) => encodedPart(part, files))));
  if (bytes !== undefined) return { type: "application/octet-stream", content: Buffer.from(bytes, "base64") };
  if (file !== undefined) {
    const { mediaType, size, open } = await fileOf(file, files);
    return { type: mediaType, content: { size, besideFiles: "", open: () => Readable.from(open()) } };
  }
  if (body === undefined) return undefined;
  if (typeof body === "string") return { type: "text/plain;charset=utf-8", content: body };
  return { type: "application/json", content: JSON.stringify(body) };
}

/** What a search for secrets reads of a body. Secrets in files are masked when these are stored. */
export function searchedText(content: Content): string {
  if (typeof content === "string") return content;
  return content instanceof Uint8Array ? Buffer.from(content).toString("latin1") : content.besideFiles;
}

/** Throws NodeFailed. A definition may set `response: file` on a node that can have no files. */
export function filesFor(files: ports.NodeFiles | undefined): ports.NodeFiles {
  if (files) return files;
  const message = "This node has no files: the service has no storage for them, or the node's output is sensitive";
  throw new ports.NodeFailed("files_unavailable", message, { retryable: false });
}

interface OpenedFile extends ports.RunFile {
  open(): AsyncGenerator<Uint8Array, void>;
}

async function fileOf(value: unknown, given: ports.NodeFiles | undefined): Promise<OpenedFile> {
  const files = filesFor(given);
  const file = await files.find(value);
  return {
    ...file,
    async *open() {
      yield* (await files.open(file)) as AsyncIterable<Uint8Array>;
    },
  };
}

function encodeForm(form: NonNullable<HttpInput["form"]>): string {
  const pairs = Object.entries(form).flatMap(([name, values]) => [values].flat().map((value) => [name, String(value)]));
  return new URLSearchParams(pairs).toString();
}

/** A part: its head, its bytes or its file, and what identifies them. */
interface EncodedPart {
  readonly head: Buffer;
  readonly size: number;
  readonly content: Buffer | OpenedFile;
}

async function encodedPart(part: Part, files: ports.NodeFiles | undefined): Promise<EncodedPart> {
  const file = part.file === undefined ? undefined : await fileOf(part.file, files);
  const content = file ?? contentOf(part);
  const head = Buffer.from(headOf(part, file));
  return { head, size: file ? file.size : (content as Buffer).length, content };
}

function encodeMultipart(parts: readonly EncodedPart[]): HttpBody {
  // A hash of the content cannot be written into the content.
  const hash = createHash("sha256");
  for (const { head, size, content } of parts)
    hash
      .update(`${head.length}:${size}:`)
      .update(head)
      .update(content instanceof Uint8Array ? content : content.sha256);
  const boundary = `portico-${hash.digest("hex").slice(0, 48)}`;
  const [open, end, last] = [`--${boundary}\r\n`, "\r\n", `--${boundary}--\r\n`].map((text) => Buffer.from(text)) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  const type = `multipart/form-data; boundary=${boundary}`;
  if (parts.every(({ content }) => content instanceof Uint8Array)) {
    const pieces = parts.flatMap(({ head, content }) => [open, head, content as Buffer, end]);
    return { type, content: Buffer.concat([...pieces, last]) };
  }
  const size = parts.reduce((sum, part) => sum + open.length + part.head.length + part.size + end.length, last.length);
  async function* pieces(): AsyncGenerator<Uint8Array, void> {
    for (const { head, content } of parts) {
      yield Buffer.concat([open, head]);
      if (content instanceof Uint8Array) yield content;
      else yield* content.open();
      yield end;
    }
    yield last;
  }
  const known = parts.flatMap(({ head, content }) => [head, ...(content instanceof Uint8Array ? [content] : [])]);
  const besideFiles = Buffer.concat(known).toString("latin1");
  return { type, content: { size, besideFiles, open: () => Readable.from(pieces()) } };
}

function headOf({ name, filename, type, bytes }: Part, file: OpenedFile | undefined): string {
  const given = filename ?? file?.name;
  const named = given === undefined ? "" : `; filename="${quoted(given)}"`;
  const own = type ?? file?.mediaType ?? (bytes !== undefined ? "application/octet-stream" : undefined);
  const typed = own === undefined ? "" : `Content-Type: ${own}\r\n`;
  return `Content-Disposition: form-data; name="${quoted(name)}"${named}\r\n${typed}\r\n`;
}

function contentOf({ value, bytes }: Part): Buffer {
  return bytes === undefined ? Buffer.from(String(value)) : Buffer.from(bytes, "base64");
}

/** As browsers write names. */
function quoted(text: string): string {
  return text.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
