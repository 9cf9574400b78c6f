import { notUtf8, ports } from "@portico/core";

// A byte order mark is kept: a text is written back as it was read.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The text of a document's bytes. Throws DocumentsUnavailable for too many bytes and for other encodings than UTF-8. */
export function decodeText(bytes: Uint8Array): string {
  const fault = bytes.length > ports.DOCUMENT_BYTES ? "is over 16 MiB" : notUtf8(bytes);
  if (fault !== undefined) throw new ports.DocumentsUnavailable(`A document ${fault}`, { fault });
  return decoder.decode(bytes);
}
