import { Buffer } from "node:buffer";
import { BORDERS, joined, MASKED } from "./mask.ts";
import type { SecretFinder } from "./secret-finder.ts";

/** Bytes that are searched at once, at least. */
const PIECE = 64 * 1024;

/**
 * Masks the secrets in the bytes of a text, also across pieces of the source. Its memory grows with the longest secret, and not with the
 * source. All encodings that contain ASCII work. Secrets with other characters are found in UTF-8.
 */
export async function* maskBytes(source: AsyncIterable<Uint8Array>, finder: SecretFinder): AsyncGenerator<Uint8Array, void> {
  let pieces: string[] = [];
  let size = 0;
  /** The characters at the beginning of `pieces` that belong to a secret which is already masked. */
  let covered = 0;
  const masked = (isEnd: boolean): Buffer => {
    const text = pieces.join("");
    // What begins later may go on in the next piece.
    const end = isEnd ? text.length : Math.max(0, text.length - finder.longest - BORDERS);
    let shown = "";
    for (const place of joined(finder.find(text))) {
      if (place.start >= end) break;
      if (place.start >= covered) shown += text.slice(covered, place.start) + MASKED;
      covered = Math.max(covered, place.end);
    }
    if (covered < end) shown += text.slice(covered, end);
    covered = Math.max(0, covered - end);
    pieces = [text.slice(end)];
    size = text.length - end;
    return Buffer.from(shown, "latin1");
  };
  for await (const bytes of source) {
    pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1"));
    size += bytes.length;
    // Few searches: each one begins with the rest of the one before.
    if (size >= Math.max(PIECE, 2 * finder.longest)) yield masked(false);
  }
  if (size > 0) yield masked(true);
}
