import { createHash } from "node:crypto";
import { ports } from "@portico/core";
import type { BlobPlace } from "./blob-place.ts";
import type { TakenSource } from "./take-source.ts";
import { orUnavailable } from "./unavailable.ts";

export interface StoreOptions {
  readonly maxBytes: number;
  readonly ifAbsent: boolean;
  /** Ends it until all is written. */
  readonly signal: AbortSignal;
  /** Ends it also afterwards, when the blob may be there or not. */
  readonly closing: AbortSignal;
}

/** Hash a source into a draft, chunk by chunk, and place it whole. What the place throws is told apart from what the source throws. */
export async function storeBlob(
  place: BlobPlace,
  key: string,
  source: TakenSource,
  { maxBytes, ifAbsent, signal, closing }: StoreOptions,
): Promise<ports.StoredBlob> {
  // Spares reading it all: only placing it decides.
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
      // While it is on its way to the disk.
      hash.update(chunk);
      await orUnavailable(written, signal);
    }
    await orUnavailable(draft.place(ifAbsent, closing), signal);
    return { size, sha256: hash.digest("hex") };
  } catch (error) {
    // The first error is the one to tell of.
    await draft.discard().catch(() => {});
    throw error;
  }
}
