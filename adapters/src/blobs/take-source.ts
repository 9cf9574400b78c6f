import { orAborted, type ports } from "@portico/core";

/** A source with a single reader. */
export interface TakenSource {
  /** The next chunk; undefined at the end. Rejects with the signal's reason, also while the source is silent. */
  next(signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** The source is not read any further. */
  end(): void;
}

/** Reads a source chunk by chunk. An error of the source between two reads does not end the process. */
export function takeSource(source: ports.BlobSource): TakenSource {
  const iterator: AsyncIterator<unknown> = source[Symbol.asyncIterator]();
  // Its iterator listens only from the first to the last chunk, and an error without a listener ends the process.
  if ("destroy" in source) source.on("error", () => {});
  return {
    async next(signal) {
      signal.throwIfAborted();
      const { done, value } = await orAborted(iterator.next(), signal);
      if (done) return undefined;
      if (!(value instanceof Uint8Array)) throw new TypeError("The source of a blob must give bytes");
      return value;
    },
    end() {
      // The iterator of a stream returns only after the chunk that it waits for, which may never arrive.
      if ("destroy" in source) source.destroy();
      else void iterator.return?.().catch(() => {});
    },
  };
}
