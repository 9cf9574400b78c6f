import { Readable } from "node:stream";
import { ports } from "@portico/core";
import type { BlobBytes } from "./blob-place.ts";
import { toUnavailable } from "./unavailable.ts";

/** Maximum bytes of one read. Larger reads are hardly faster, and every reader holds one or two. */
const READ_BYTES = 256 * 1024;

/** The bytes of a blob from `start` up to `end`, exclusive. The blob is closed before the stream reports that it has closed. */
export function rangeStream(bytes: BlobBytes, start: number, end: number): Readable {
  let position = start;
  return new Readable({
    highWaterMark: READ_BYTES,
    read() {
      if (position >= end) return void this.push(null);
      bytes.read(position, Math.min(READ_BYTES, end - position)).then(
        (chunk) => {
          // The blob is shorter than before: an early end would look like the whole blob.
          if (chunk.byteLength === 0) return this.destroy(new ports.BlobsUnavailable("The blob is shorter than it was"));
          position += chunk.byteLength;
          this.push(chunk);
          if (position >= end) this.push(null);
        },
        (error: unknown) => this.destroy(toUnavailable(error) as Error),
      );
    },
    destroy(reason, closed) {
      void closing(bytes, reason).then(closed);
    },
  });
}

/**
 * Destroy a stream with an error if it has a listener for errors: an error without a listener would end the process. Otherwise
 * its reader sees it cut short.
 */
export function cutShort(stream: Readable, error: unknown): void {
  stream.destroy(stream.listenerCount("error") > 0 ? (error as Error) : undefined);
}

/** The error that a stream ends with, once its blob is closed. */
function closing(bytes: BlobBytes, error: Error | null): Promise<Error | null> {
  return bytes.close().then(
    () => error,
    (cause: unknown) => error ?? (toUnavailable(cause) as Error),
  );
}
