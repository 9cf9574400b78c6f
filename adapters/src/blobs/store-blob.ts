import { createHash } from "node:crypto";
import { ports } from "@portico/core";
import type { BlobPlace } from "./blob-place.ts";
import type { TakenSource } from "./take-source.ts";
import { orUnavailable } from "./unavailable.ts";

/** How one blob is stored. */
export interface StoreOptions {
  readonly maxBytes: number;
  readonly ifAbsent: boolean;
  /** Aborts the write, until all bytes are written. */
  readonly signal: AbortSignal;
  /** Also aborts it after that, when it is unknown whether the blob is stored. */
  readonly closing: AbortSignal;
}

/**
 * Copies a source into a draft, chunk by chunk, hashes it, and places it as a whole. Errors of the storage and of the source are
 * distinguished.
 */
export async function storeBlob(
  place: BlobPlace,
  key: string,
  source: TakenSource,
  { maxBytes, ifAbsent, signal, closing }: StoreOptions,
): Promise<ports.StoredBlob> {
  // Avoids reading the whole source. Only `place` decides.
  if (ifAbsent && (await orUnavailable(place.find(key, signal), signal)))
    throw new ports.BlobExists("There is a blob of that key");
  const draft = await orUnavailable(place.draft(key, signal), signal);
  try {
    const hash = createHash("sha256");
    let size = 0;
    for (;;) {
      const chunk = await source.next(signal);
      if (chunk === undefined) break;
      size += chunk.byteLength;
      if (size > maxBytes) throw new ports.BlobTooLarge("The blob is over its limit of bytes");
      const written = draft.write(chunk);
      // Hashes while the chunk is being written.
      hash.update(chunk);
      await orUnavailable(written, signal);
    }
    await orUnavailable(draft.place(ifAbsent, closing), signal);
    return { size, sha256: hash.digest("hex") };
  } catch (error) {
    // The first error is reported.
    await draft.discard().catch(() => {});
    throw error;
  }
}
