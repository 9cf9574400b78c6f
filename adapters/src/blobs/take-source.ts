import { orAborted, type ports } from "@portico/core";

/** A source that is read by whoever took it. */
export interface TakenSource {
  /** The next chunk; undefined at the end. Rejects with the signal's reason, also while the source gives nothing. */
  next(signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Nobody reads on. */
  end(): void;
}

export function takeSource(source: ports.BlobSource): TakenSource {
  const iterator: AsyncIterator<unknown> = source[Symbol.asyncIterator]();
  // Its iterator listens only from the first chunk to the last, and an error that nobody listens to ends the process.
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
      // A stream's own iterator returns only after the chunk that it waits for, which may never come.
      if ("destroy" in source) source.destroy();
      else void iterator.return?.().catch(() => {});
    },
  };
}
