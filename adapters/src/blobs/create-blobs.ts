import type { Readable } from "node:stream";
import { ports, type Scope } from "@portico/core";
import type { BlobBytes, BlobPlace } from "./blob-place.ts";
import { cutShort, rangeStream } from "./range-stream.ts";
import { storeBlob } from "./store-blob.ts";
import { takeSource } from "./take-source.ts";
import { orUnavailable } from "./unavailable.ts";

/** The port's rules over any storage: keys, limits, ranges, and a closing that waits for all open operations. */
export function createBlobs(place: BlobPlace, scope: Scope): ports.Blobs {
  const closing = new AbortController();
  const begun = new Set<Promise<unknown>>();
  const readers = new Set<Readable>();
  const listings = new Set<AsyncGenerator<string, void>>();
  scope.onClose(async () => {
    closing.abort(new ports.BlobsUnavailable("The blobs are closed"));
    for (const reader of readers) cutShort(reader, closing.signal.reason);
    await Promise.allSettled(begun);
    // A reader of keys may be between two of them.
    await Promise.allSettled([...listings].map((listing) => listing.return()));
    await place.close();
  });

  const begin = async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    if (!ports.isBlobKey(key)) throw new TypeError("Invalid blob key");
    return track(work);
  };
  const track = async <T>(work: () => Promise<T>): Promise<T> => {
    closing.signal.throwIfAborted();
    const working = work();
    begun.add(working);
    try {
      return await working;
    } finally {
      begun.delete(working);
    }
  };
  const orClosing = (signal: AbortSignal | undefined): AbortSignal =>
    signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
  const startReading = (bytes: BlobBytes, start: number, end: number, signal?: AbortSignal): Readable => {
    const stream = rangeStream(bytes, start, end);
    const leave = (): void => cutShort(stream, signal?.reason);
    const over = new Promise<void>((resolve) => stream.once("close", resolve));
    readers.add(stream);
    begun.add(over);
    signal?.addEventListener("abort", leave, { once: true });
    void over.then(() => {
      readers.delete(stream);
      begun.delete(over);
      signal?.removeEventListener("abort", leave);
    });
    return stream;
  };

  const locate = place.locate?.bind(place);
  return {
    ...(locate && { locate: (key: string) => begin(key, () => orUnavailable(locate(key))) }),
    async put(key, source, { maxBytes, ifAbsent = false, signal }) {
      const taken = takeSource(source);
      try {
        if (!(maxBytes >= 0)) throw new RangeError("The limit of a blob is a number of bytes");
        const either = orClosing(signal);
        return await begin(key, () => {
          either.throwIfAborted();
          return storeBlob(place, key, taken, { maxBytes, ifAbsent, signal: either, closing: closing.signal });
        });
      } catch (error) {
        taken.end();
        throw error;
      }
    },
    stat: (key) => begin(key, () => orUnavailable(place.find(key, closing.signal))),
    open: (key, { start, end, signal } = {}) =>
      begin(key, async () => {
        signal?.throwIfAborted();
        const signals = signal ? [signal, closing.signal] : [closing.signal];
        const bytes = await orUnavailable(place.open(key, { start, end }, signals), ...signals);
        if (bytes === undefined) return undefined;
        try {
          const [first, past] = toRange(bytes.size, start, end);
          closing.signal.throwIfAborted();
          signal?.throwIfAborted();
          return { size: bytes.size, stream: startReading(bytes, first, past, signal) };
        } catch (error) {
          await bytes.close();
          throw error;
        }
      }),
    remove: (key) => begin(key, () => orUnavailable(place.remove(key, closing.signal))),
    async *keys(prefix = "", signal) {
      if (prefix !== "" && !ports.isBlobKey(prefix) && !ports.isBlobKey(`${prefix}x`))
        throw new TypeError("No key of a blob begins like this");
      const either = orClosing(signal);
      const keys = place.keys(prefix, either);
      listings.add(keys);
      try {
        for (;;) {
          signal?.throwIfAborted();
          const { done, value } = await track(() => orUnavailable(keys.next(), either));
          if (done) return;
          if (ports.isBlobKey(value)) yield value;
        }
      } finally {
        listings.delete(keys);
        await keys.return();
      }
    },
  };
}

/** First byte, and the byte after the last. */
function toRange(size: number, start: number | undefined, end: number | undefined): readonly [number, number] {
  if (start === undefined && end === undefined) return [0, size];
  const [first, last] = [start ?? 0, end ?? size - 1];
  const isWithin = Number.isSafeInteger(first) && Number.isSafeInteger(last) && first >= 0 && first <= last && last < size;
  if (!isWithin) throw new RangeError("The range is not within the blob");
  return [first, last + 1];
}
