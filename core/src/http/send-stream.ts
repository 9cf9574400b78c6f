import type { Readable, Writable } from "node:stream";
import type { Exchange, RequestHead } from "../route.ts";

/** What `sendStream` needs of a handler's input, which may be given as it is. */
export interface SendingInput {
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
 * destroyed then. Rejects with what `open` throws, and with what the source breaks with, which cuts the answer.
 */
export async function sendStream({ exchange, head, signal }: SendingInput, answer: StreamAnswer): Promise<void> {
  const { status, headers } = answer;
  if (head.method === "HEAD") return void exchange.respond(status, headers).end();
  const source = await answer.open();
  // Whatever happens, somebody has to listen.
  source.on("error", ignore);
  try {
    signal.throwIfAborted();
    if (source.destroyed) throw source.errored ?? new Error("The source of the answer was closed before it was read");
    await pump(source, exchange.respond(status, headers));
  } finally {
    source.destroy();
  }
}

/** Not `pipeline`: it destroys what it writes to, and then nobody can tell a source that broke from a reader who left. */
function pump(source: Readable, answer: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    answer.on("error", ignore).once("close", resolve);
    source.once("error", reject).once("close", () => {
      if (!source.readableEnded) reject(new Error("The source of the answer was closed before its end"));
    });
    source.pipe(answer);
  });
}

function ignore(): void {}
