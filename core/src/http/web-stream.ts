import type { Readable } from "node:stream";

/**
 * A Node stream as a web stream, with backpressure. Not `Readable.toWeb`: if its reader cancels, Node 24 still enqueues buffered
 * chunks on the closed controller, which is an uncaught exception.
 */
export function toWebStream(source: Readable): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.pause();
        source.on("data", (chunk: Buffer) => {
          controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
          if ((controller.desiredSize ?? 0) <= 0) source.pause();
        });
        source.on("end", () => controller.close());
        source.on("error", (error) => controller.error(error));
        source.on("close", () => {
          if (!source.readableEnded && !source.errored) controller.error(new Error("The answer was broken off"));
        });
      },
      pull: () => void source.resume(),
      cancel() {
        source.removeAllListeners("data").removeAllListeners("end").removeAllListeners("error");
        source.on("error", () => {});
        source.destroy();
      },
    },
    { highWaterMark: 1 },
  );
}
