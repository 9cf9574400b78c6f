import { once } from "node:events";
import type { OutgoingHttpHeaders } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { Answer, UpstreamExchange } from "./upstream-exchange.ts";

export interface AnswerHead {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: OutgoingHttpHeaders;
}

/**
 * A step of a stream: send text or bytes as one chunk, wait for a promise or for a function's result (a gate, a signal of the test), close
 * the connection, or reset it. A stream without CUT or RESET at its end ends normally.
 */
export type Step =
  | string
  | Uint8Array
  | Promise<unknown>
  | ((exchange: UpstreamExchange) => Promise<unknown>)
  | typeof CUT
  | typeof RESET;

/** Closes the connection in the middle of the answer. */
export const CUT = Symbol("cut");
/** The same with a reset (RST) in place of an orderly close (FIN). */
export const RESET = Symbol("reset");

/** A whole JSON answer with its content-length. A string is sent unchanged, so that the test determines the spelling of the JSON. */
export function json(status: number, value: unknown, headers: OutgoingHttpHeaders = {}): Answer {
  return whole(status, typeof value === "string" ? value : JSON.stringify(value), {
    "content-type": "application/json",
    ...headers,
  });
}

/** An error page, as front-end servers send it. */
export function html(status: number, headers: OutgoingHttpHeaders = {}): Answer {
  const page = `<!DOCTYPE html><html><head><title>${status}</title></head><body><h1>Error ${status}</h1></body></html>`;
  return whole(status, page, { "content-type": "text/html; charset=utf-8", ...headers });
}

/** A status and not one byte of a body. */
export function empty(status: number, headers: OutgoingHttpHeaders = {}): Answer {
  return whole(status, "", headers);
}

export function redirect(location: string, status = 307): Answer {
  return empty(status, { location });
}

/** A whole answer of any kind with its content-length. */
export function whole(status: number, body: string | Uint8Array, headers: OutgoingHttpHeaders = {}): Answer {
  return ({ response }) => {
    response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers });
    response.end(body);
  };
}

/** A chunked answer, step by step. The head is sent before the first step. */
export function stream(steps: Iterable<Step> | AsyncIterable<Step>, { status = 200, headers = {} }: AnswerHead = {}): Answer {
  return async (exchange) => {
    exchange.response.writeHead(status, headers);
    exchange.response.flushHeaders();
    if (await play(steps, exchange)) exchange.response.end();
  };
}

/** Server-sent events, step by step: `stream` with the content type that both protocols use. */
export function events(steps: Iterable<Step> | AsyncIterable<Step>, { status, headers }: AnswerHead = {}): Answer {
  return stream(steps, {
    ...(status && { status }),
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache", ...headers },
  });
}

/** Bytes straight to the socket, HTTP included: for answers that no HTTP server would write. Closes the connection at the end. */
export function raw(...steps: readonly Step[]): Answer {
  return async (exchange) => {
    for (const step of steps) {
      if (!(await pause(step, exchange))) return;
      if (typeof step === "string" || step instanceof Uint8Array) exchange.socket.write(step);
      else if (typeof step === "symbol") return destroy(exchange, step);
    }
    exchange.socket.end();
  };
}

/** Accepts the request and does not answer until the client disconnects. */
export function never(): Answer {
  return ({ over }) => over;
}

/** Closes (CUT) or resets (RESET) the connection without a byte of an answer, once the request is whole. */
export function hangUp(how: typeof CUT | typeof RESET = CUT): Answer {
  return async (exchange) => {
    await exchange.request.sha256();
    destroy(exchange, how);
  };
}

/** The answer after interim ones (100-199). */
export function afterInterim(answer: Answer): Answer {
  return (exchange) => {
    exchange.response.writeProcessing();
    exchange.response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    return answer(exchange);
  };
}

/** The answer once a promise of the test has settled. */
export function after(ready: Promise<unknown>, answer: Answer): Answer {
  return async (exchange) => {
    if (await pause(ready, exchange)) await answer(exchange);
  };
}

/** The answer of an upstream that doesn't read the body of its request before `until`. */
export function slowReader(until: Promise<unknown>, answer: Answer): Answer {
  return (exchange) => {
    exchange.holdBody(until);
    return answer(exchange);
  };
}

/** A body of that many bytes, made on the way and sent no faster than it is read. */
export function huge(bytes: number, headers: OutgoingHttpHeaders = {}): Answer {
  return async (exchange) => {
    const chunk = Buffer.alloc(64 * 1024, "a");
    exchange.response.writeHead(200, { "content-length": bytes, ...headers });
    for (let left = bytes; left > 0 && !exchange.isOver; left -= chunk.length) {
      await write(chunk.subarray(0, Math.min(left, chunk.length)), exchange);
    }
    exchange.response.end();
  };
}

/** A body under a content-encoding, to be sent as the bytes it is. */
export function compress(encoding: "gzip" | "br" | "deflate", body: string | Uint8Array): Buffer {
  return { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync }[encoding](body);
}

/** Text or bytes in pieces cut at these offsets: for chunks that split events and characters. */
export function splitAt(text: string | Uint8Array, ...offsets: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text as string);
  return [0, ...offsets].map((from, index) => bytes.subarray(from, offsets[index] ?? bytes.length));
}

/** True when the stream came to its end and may be ended well. */
async function play(steps: Iterable<Step> | AsyncIterable<Step>, exchange: UpstreamExchange): Promise<boolean> {
  for await (const step of withoutAwaiting(steps)) {
    if (!(await pause(step.step, exchange))) return false;
    if (typeof step.step === "symbol") {
      destroy(exchange, step.step);
      return false;
    }
    if (typeof step.step === "string" || step.step instanceof Uint8Array) await write(step.step, exchange);
  }
  return !exchange.isOver;
}

/** `for await` would wait for promises among the steps by itself, and hang on them when the other side leaves. */
async function* withoutAwaiting(steps: Iterable<Step> | AsyncIterable<Step>): AsyncGenerator<{ readonly step: Step }> {
  if (Symbol.asyncIterator in steps) for await (const step of steps) yield { step: step as Step };
  else for (const step of steps) yield { step };
}

/** Waits where the step says so. False when the other side left meanwhile. */
async function pause(step: Step, exchange: UpstreamExchange): Promise<boolean> {
  const waiting = typeof step === "function" ? step(exchange) : step instanceof Promise ? step : undefined;
  if (waiting && !exchange.isOver) await Promise.race([waiting, exchange.over]);
  return !exchange.isOver;
}

/** One write, one chunk: the next one waits for the event loop to have sent this one, and for a reader that is slow. */
async function write(chunk: string | Uint8Array, { response, over, isOver }: UpstreamExchange): Promise<void> {
  if (!response.write(chunk) && !isOver) await Promise.race([once(response, "drain"), over]);
  await turn();
}

function destroy({ socket }: UpstreamExchange, how: typeof CUT | typeof RESET): void {
  if (how === RESET) socket.resetAndDestroy();
  else socket.destroySoon();
}
