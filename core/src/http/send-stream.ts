import type { Readable, Writable } from "node:stream";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Exchange, RequestHead } from "../grammar/contract.ts";
import { readStream } from "./read-stream.ts";

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
