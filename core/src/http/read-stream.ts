import type { Readable, Writable } from "node:stream";
import { guardCall } from "../grammar/guard-call.ts";

/** What is done with a stream that an adapter made. */
export interface StreamReading {
  chunk(chunk: Buffer): void;
  /** Everything was read. */
  end(): void;
  /** The stream broke, was closed before its end, or gave a chunk that is not bytes; or `chunk` or `end` threw. Called once, and must not throw. */
  broke(error: Error): void;
}

/**
 * Reads a stream that an adapter made, by its events. Errors end the reading of this stream only: an error that is thrown in an event handler would
 * end the process.
 */
export function readStream(source: Readable, { chunk, end, broke }: StreamReading): void {
  let isOver = false;
  const fail = (thrown: unknown) => {
    if (isOver) return;
    isOver = true;
    const error = thrown instanceof Error ? thrown : new Error("The stream broke", { cause: thrown });
    // No handler can be told of what goes wrong while a failure is told.
    guardCall(
      () => broke(error),
      () => {},
    );
    source.destroy();
  };
  source
    .on("data", (given: unknown) => {
      if (isOver) return;
      guardCall(() => chunk(bytesOf(given)), fail);
    })
    .once("end", () => {
      if (isOver) return;
      guardCall(() => {
        end();
        isOver = true;
      }, fail);
    })
    .on("error", fail)
    .once("close", () => {
      if (!source.readableEnded) fail(new Error("The stream was closed before its end"));
    });
}

/**
 * Sends a stream that an adapter made through another one, at its pace. If the stream breaks, the target is destroyed with the error. Not `pipe`, which
 * throws in an event handler if a chunk is not bytes.
 */
export function passStream<T extends Writable>(source: Readable, target: T): T {
  readStream(source, {
    chunk: (chunk) => void (target.write(chunk) || source.pause()),
    end: () => void target.end(),
    broke: (error) => void target.destroy(error),
  });
  return target.on("drain", () => source.resume()).on("close", () => source.destroy());
}

/** Adapters may come without types: Node's streams also carry texts and objects. */
function bytesOf(chunk: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return chunk;
  if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw new TypeError(`A stream of an adapter must give Buffers, and gave a value of the type ${typeof chunk}`);
}

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

/** Resolves when a stream accepts more data after a `write` that returned false, or when its reader has left. */
export function roomIn(stream: Writable): Promise<void> {
  if (stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = () => {
      stream.off("drain", settle).off("close", settle);
      resolve();
    };
    stream.on("drain", settle).on("close", settle);
  });
}
