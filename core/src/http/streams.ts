import type { Readable, Writable } from "node:stream";
import type { Exchange, RequestHead } from "../grammar/contract.ts";
import { guardCall } from "../grammar/guard-call.ts";
import type { Clock, Timer } from "../ports/clock.ts";

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

/** A reader that takes no data for this long counts as gone. Slow readers are allowed. */
const READER_SILENCE_MS = 60_000;

/** The needs of `sendStream`: a handler's input, and the clock. */
export interface SendingInput {
  readonly clock: Clock;
  readonly exchange: Exchange;
  readonly head: Pick<RequestHead, "method">;
  readonly signal: AbortSignal;
}

/** An answer whose body is a stream. */
export interface StreamAnswer {
  readonly status: number;
  /**
   * With `content-length` if it is known: bytes are not counted here. Read when the head is sent, so a getter can compute how
   * long something stays valid.
   */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Not called for HEAD. Called before the head is sent, so that its errors are ordinary error answers. */
  open(): Readable | Promise<Readable>;
}

/**
 * Answer an exchange with the bytes of a stream, at the reader's pace. Resolves when everything is sent. Also resolves when the
 * reader has left: the source is then destroyed. A reader that takes no data for a minute counts as gone, and is cut. Rejects
 * with the errors of `open`, and with the errors of the source, which cut the answer.
 */
export async function sendStream({ exchange, head, signal, clock }: SendingInput, answer: StreamAnswer): Promise<void> {
  const { status } = answer;
  if (head.method === "HEAD") return void exchange.respond(status, answer.headers).end();
  const source = await answer.open();
  // An error event without a listener would be an uncaught exception.
  source.on("error", ignore);
  try {
    signal.throwIfAborted();
    if (source.destroyed) throw source.errored ?? new Error("The source of the answer was closed before it was read");
    await pump(source, exchange.respond(status, answer.headers), clock);
  } finally {
    source.destroy();
  }
}

/**
 * Not `pipeline`: it destroys its target, so a failed source and a reader who left look the same. Not `pipe`: it hides since when
 * it waits for the reader.
 */
function pump(source: Readable, answer: Writable, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    let isReaders = false;
    // The reader is not silent while the answer waits for the source.
    const waitForReader = () => {
      isReaders = true;
      if (timer) return timer.refresh();
      timer = clock.after(READER_SILENCE_MS, () => {
        timer = undefined;
        if (isReaders) answer.destroy();
      });
    };
    answer
      .on("error", ignore)
      .on("drain", () => {
        isReaders = source.readableEnded;
        source.resume();
      })
      .once("close", () => {
        timer?.cancel();
        source.pause();
        resolve();
      });
    readStream(source, {
      chunk(chunk) {
        if (answer.write(chunk)) return;
        source.pause();
        waitForReader();
      },
      end() {
        answer.end();
        waitForReader();
      },
      broke: reject,
    });
  });
}

function ignore(): void {}
