import type { Readable, Writable } from "node:stream";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Exchange, RequestHead } from "../route.ts";

/** A reader that has taken nothing for so long is not there any more; slow ones are welcome. */
const READER_SILENCE_MS = 60_000;

/** What `sendStream` needs: a handler's input, and the time. */
export interface SendingInput {
  readonly clock: Clock;
  readonly exchange: Exchange;
  readonly head: Pick<RequestHead, "method">;
  readonly signal: AbortSignal;
}

export interface StreamAnswer {
  readonly status: number;
  /** With `content-length` where it is known: nobody counts here. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Not called for HEAD. Called before the head is sent, so that what it throws is an ordinary error answer. */
  open(): Readable | Promise<Readable>;
}

/**
 * Answer an exchange with the bytes of a stream, in the reader's pace. Resolves when all of it is sent, or the reader has left: the source is
 * destroyed then. A reader to whom nothing more can be sent for a minute counts as one that has left, and is cut. Rejects with what `open`
 * throws, and with what the source breaks with, which cuts the answer.
 */
export async function sendStream({ exchange, head, signal, clock }: SendingInput, answer: StreamAnswer): Promise<void> {
  const { status, headers } = answer;
  if (head.method === "HEAD") return void exchange.respond(status, headers).end();
  const source = await answer.open();
  // Whatever happens, somebody has to listen.
  source.on("error", ignore);
  try {
    signal.throwIfAborted();
    if (source.destroyed) throw source.errored ?? new Error("The source of the answer was closed before it was read");
    await pump(source, exchange.respond(status, headers), clock);
  } finally {
    source.destroy();
  }
}

/**
 * Not `pipeline`: it destroys what it writes to, and then nobody can tell a source that broke from a reader who left. Not `pipe`: nobody can
 * tell then since when it waits for the reader.
 */
function pump(source: Readable, answer: Writable, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    let isReaders = false;
    // While all waits for the source, its reader's silence is no fault of the reader's.
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
    source
      .once("error", reject)
      .once("close", () => {
        if (!source.readableEnded) reject(new Error("The source of the answer was closed before its end"));
      })
      .once("end", () => {
        answer.end();
        waitForReader();
      })
      .on("data", (chunk: Buffer) => {
        if (answer.write(chunk)) return;
        source.pause();
        waitForReader();
      });
  });
}

function ignore(): void {}
