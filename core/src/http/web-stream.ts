import type { Readable } from "node:stream";
import { readStream } from "./read-stream.ts";

/**
 * A Node stream as a web stream, with backpressure. Not `Readable.toWeb`: if its reader cancels, Node 24 still enqueues buffered
 * chunks on the closed controller, which is an uncaught exception.
 */
export function toWebStream(source: Readable): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.pause();
        readStream(source, {
          chunk(chunk) {
            controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
            if ((controller.desiredSize ?? 0) <= 0) source.pause();
          },
          end: () => controller.close(),
          broke: (error) => controller.error(error),
        });
      },
      pull: () => void source.resume(),
      // The stream is read no further. A controller that is closed must not be told of it.
      cancel: () => void source.removeAllListeners("data").removeAllListeners("end").destroy(),
    },
    { highWaterMark: 1 },
  );
}
