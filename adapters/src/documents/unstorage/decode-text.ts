import { ports } from "@portico/core";

// A byte order mark is kept: a text is written back as it was read.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a document's bytes. Throws DocumentsUnavailable for too many bytes and for invalid UTF-8. */
export function decodeText(bytes: Uint8Array): string {
  if (bytes.length > ports.DOCUMENT_BYTES) throw new ports.DocumentsUnavailable("A document is over 16 MiB");
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ports.DocumentsUnavailable("A document is not UTF-8 text");
  }
}
