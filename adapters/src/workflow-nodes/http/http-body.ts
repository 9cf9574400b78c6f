import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { HttpInput } from "./http-input.ts";

/** A request's body, and the `content-type` that describes it. */
export interface HttpBody {
  readonly type: string;
  readonly content: string | Uint8Array;
}

type Part = NonNullable<HttpInput["multipart"]>[number];

/** Undefined without a body. The same input has the same bytes, because a server may compare requests with one `Idempotency-Key`. */
export function bodyOf({ body, form, multipart, bytes }: HttpInput): HttpBody | undefined {
  if (form) return { type: "application/x-www-form-urlencoded", content: encodeForm(form) };
  if (multipart) return encodeMultipart(multipart);
  if (bytes !== undefined) return { type: "application/octet-stream", content: Buffer.from(bytes, "base64") };
  if (body === undefined) return undefined;
  if (typeof body === "string") return { type: "text/plain;charset=utf-8", content: body };
  return { type: "application/json", content: JSON.stringify(body) };
}

function encodeForm(form: NonNullable<HttpInput["form"]>): string {
  const pairs = Object.entries(form).flatMap(([name, values]) => [values].flat().map((value) => [name, String(value)]));
  return new URLSearchParams(pairs).toString();
}

function encodeMultipart(parts: readonly Part[]): HttpBody {
  const encoded = parts.map((part) => [Buffer.from(headOf(part)), contentOf(part)] as const);
  // A hash of the content cannot be written into the content.
  const hash = createHash("sha256");
  for (const [head, content] of encoded) hash.update(`${head.length}:${content.length}:`).update(head).update(content);
  const boundary = `portico-${hash.digest("hex").slice(0, 48)}`;
  const open = Buffer.from(`--${boundary}\r\n`);
  const end = Buffer.from("\r\n");
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    content: Buffer.concat([
      ...encoded.flatMap(([head, content]) => [open, head, content, end]),
      Buffer.from(`--${boundary}--\r\n`),
    ]),
  };
}

function headOf({ name, filename, type, bytes }: Part): string {
  const file = filename === undefined ? "" : `; filename="${quoted(filename)}"`;
  const own = type ?? (bytes !== undefined ? "application/octet-stream" : undefined);
  const typed = own === undefined ? "" : `Content-Type: ${own}\r\n`;
  return `Content-Disposition: form-data; name="${quoted(name)}"${file}\r\n${typed}\r\n`;
}

function contentOf({ value, bytes }: Part): Buffer {
  return bytes === undefined ? Buffer.from(String(value)) : Buffer.from(bytes, "base64");
}

/** As browsers write names. */
function quoted(text: string): string {
  return text.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
