import type { Readable, Writable } from "node:stream";
import { ports, readStream } from "@portico/core";
import { type ModelError, streamErrorEvent } from "@portico/core/model-protocols";
import { type AnswerWatch, watchAnswer } from "./answer-watch.ts";
import { type CallRecord, codeOfBreak, type ProxyCall } from "./call-record.ts";
import { answerHeaders, droppedHeader, requestHeaders, requestQuery } from "./header-filter.ts";
import type { ReceivedBody } from "./receive-body.ts";
import { callFailure, relayError } from "./upstream-error.ts";

/**
 * Caller and provider use the same protocol: the bytes are forwarded in both directions without delay (open points 2). The one exception is the
 * last chunk of a compressed whole answer, which waits while a copy is decompressed.
 */
export async function relay(call: ProxyCall, received: ReceivedBody): Promise<void> {
  const { protocol, provider, exchange, record } = call;
  const answer = await send(call, received);
  record.answered(answer.status, received.facts.stream === true);
  if (answer.status < 200 || answer.status > 299) return relayError({ protocol, provider, exchange, answer });
  const headers = answer.dropped
    ? { ...answerHeaders(answer.headers, provider), ...droppedHeader(answer.dropped) }
    : answerHeaders(answer.headers, provider);
  const watch = watchAnswer(protocol, answer.headers);
  record.opened(watch);
  const out = exchange.respond(answer.status, headers);
  if (answer.whole) {
    // As text, the body leaves in one write with the head. Latin-1 has one character per byte.
    const text = answer.whole.toString("latin1");
    watch?.pushWhole(answer.whole, text);
    await watch?.settled();
    record.ended();
    out.end(text, "latin1");
    return;
  }
  const ending = (error: Error) =>
    isPlainEventStream(headers) ? streamErrorEvent(protocol, brokenStream(error, provider)) : undefined;
  // A caller that has all bytes may disconnect, so the last chunk waits until a compressed copy has been read.
  const waitsAt = watch?.isBehind ? Number(answer.headers["content-length"] ?? Infinity) : Infinity;
  await pass(answer.body, out, { record, watch, waitsAt, ending });
}

/** The error of a broken stream for its caller. It reveals only the provider's name. */
export function brokenStream(error: Error, provider: ports.ModelProvider): ModelError {
  const kind = error.name === ports.ModelTimeout.name ? "timeout" : "upstream";
  const message =
    error instanceof ports.ModelTimeout || error instanceof ports.ModelUnreachable
      ? error.message
      : `Provider "${provider.id}" ended its answer early`;
  return { kind, message: provider.redact(message) };
}

async function send(
  { provider, exchange, head, own, trail, traceparent, signal, record }: ProxyCall,
  received: ReceivedBody,
): Promise<ports.ModelAnswer> {
  const call: ports.ModelCall = {
    headers: Object.assign(requestHeaders(exchange.headers, own), trail, traceparent === undefined ? undefined : { traceparent }),
    query: requestQuery(head.search, own),
    body: received.body,
    ...(record.model !== undefined && { model: record.model }),
    ...(received.length !== undefined && { length: received.length }),
  };
  record.sending();
  try {
    return await provider.send(call, received.rest ? abortedBy(received.rest, signal) : signal);
  } catch (error) {
    return callFailure(error);
  }
}

/** The rest of the body may still be invalid. Then the call is aborted, and the caller gets the error of the body. */
function abortedBy(rest: Promise<void>, signal: AbortSignal): AbortSignal {
  const cut = new AbortController();
  rest.catch((error: unknown) => cut.abort(error));
  return AbortSignal.any([signal, cut.signal]);
}

/**
 * Forward a body as fast as the reader takes it. Resolves when it is sent or the reader has left. From the size `waitsAt` on, the last chunk
 * waits for the watch. If the body breaks, the text of `ending` is written last, after line ends that close an incomplete event. If `ending`
 * returns undefined, the connection is closed.
 */
function pass(
  body: Readable,
  out: Writable,
  {
    record,
    watch,
    waitsAt,
    ending,
  }: {
    readonly record: CallRecord;
    readonly watch: AnswerWatch | undefined;
    readonly waitsAt: number;
    readonly ending: (error: Error) => string | undefined;
  },
): Promise<void> {
  return new Promise((resolve) => {
    let last: Buffer | undefined;
    let passed = 0;
    let waiting: Buffer | undefined;
    const onDrain = () => void body.resume();
    const finish = () => {
      record.ended();
      out.end(waiting);
      resolve();
    };
    readStream(body, {
      chunk(chunk) {
        last = chunk;
        passed += chunk.length;
        watch?.push(chunk);
        if (passed >= waitsAt) waiting = chunk;
        else if (!out.write(chunk)) body.pause();
      },
      end() {
        const settled = watch?.settled();
        if (settled) void settled.then(finish);
        else finish();
      },
      broke(error) {
        let text: string | undefined;
        try {
          if (!out.destroyed) record.broke(codeOfBreak(error));
          text = out.destroyed ? undefined : ending(error);
        } finally {
          // An ending that could not be made cuts the answer.
          if (text === undefined) out.destroy();
          else out.end(endsEvent(last) ? text : `\n\n${text}`);
          resolve();
        }
      },
    });
    out.on("drain", onDrain);
    out.on("close", () => {
      body.destroy();
      resolve();
    });
  });
}

function isPlainEventStream(headers: Readonly<Record<string, string | readonly string[]>>): boolean {
  const type = headers["content-type"];
  const encoding = headers["content-encoding"];
  return (
    typeof type === "string" &&
    type.startsWith("text/event-stream") &&
    (encoding === undefined || encoding === "identity") &&
    headers["content-length"] === undefined
  );
}

function endsEvent(last: Buffer | undefined): boolean {
  if (!last) return true;
  const tail = last.subarray(-4).toString("latin1");
  return tail.endsWith("\n\n") || tail.endsWith("\r\n\r\n") || tail.endsWith("\r\r");
}
