import type { Readable, Writable } from "node:stream";
import { type Exchange, ports, readStream, type RequestHead, type RequestTrace } from "@portico/core";
import { streamErrorEvent } from "./convert/errors.ts";
import type { ModelError } from "./convert/model-events.ts";
import { answerHeaders, requestHeaders, requestQuery } from "./header-filter.ts";
import type { OwnCredentials } from "./own-credentials.ts";
import type { Protocol } from "./protocol.ts";
import type { ReceivedBody } from "./receive-body.ts";
import { callFailure, relayError } from "./upstream-error.ts";
import type { CallUsage } from "./watch/call-usage.ts";
import { type AnswerObserver, observeAnswer } from "./watch/observe-answer.ts";

export interface RelayCall {
  readonly protocol: Protocol;
  readonly provider: ports.ModelProvider;
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly received: ReceivedBody;
  readonly own: OwnCredentials;
  /** Headers that tell another instance which instances the call has passed. */
  readonly trail: Readonly<Record<string, string>>;
  /** The service's own span, which the provider continues. Undefined without traces: the caller's header passes then. */
  readonly traceparent: string | undefined;
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /** Counts the call. */
  readonly counted: CallUsage;
  /** Called when the upstream begins to answer. */
  readonly answering: (streamed: boolean) => void;
}

/**
 * Caller and provider use the same protocol: the bytes are forwarded in both directions without delay (open points 2). The one exception is the
 * last chunk of a compressed whole answer, which waits while a copy is decompressed.
 */
export async function relay(call: RelayCall): Promise<void> {
  const { protocol, provider, exchange, received, answering } = call;
  const answer = await send(call);
  answering(received.facts.stream === true);
  call.counted.answered(answer.status, received.facts.stream === true);
  if (answer.status < 200 || answer.status > 299) return relayError({ protocol, provider, exchange, answer });
  const headers = answerHeaders(answer.headers, provider);
  const watched = observeAnswer(call, answer);
  const out = exchange.respond(answer.status, headers);
  if (answer.whole) {
    watched.pushed(answer.whole);
    const ended = watched.ended();
    if (ended) await ended;
    // As text, the body leaves in one write with the head. Latin-1 has one character per byte.
    out.end(answer.whole.toString("latin1"), "latin1");
    return;
  }
  const ending = (error: Error) =>
    isPlainEventStream(headers) ? streamErrorEvent(protocol, brokenStream(error, provider)) : undefined;
  await pass(answer.body, out, watched, ending);
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

async function send({
  provider,
  exchange,
  head,
  received,
  own,
  trail,
  traceparent,
  signal,
  counted,
}: RelayCall): Promise<ports.ModelAnswer> {
  const call: ports.ModelCall = {
    headers: Object.assign(requestHeaders(exchange.headers, own), trail, traceparent === undefined ? undefined : { traceparent }),
    query: requestQuery(head.search, own),
    body: received.body,
    ...(received.length !== undefined && { length: received.length }),
  };
  counted.sending();
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
 * Forward a body as fast as the reader takes it. Resolves when it is sent or the reader has left. If the body breaks, the text of `ending` is
 * written last, after line ends that close an incomplete event. If `ending` returns undefined, the connection is closed.
 */
function pass(
  body: Readable,
  out: Writable,
  observer: AnswerObserver,
  ending: (error: Error) => string | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    let last: Buffer | undefined;
    let passed = 0;
    let waiting: Buffer | undefined;
    const onDrain = () => void body.resume();
    const finish = () => {
      out.end(waiting);
      resolve();
    };
    readStream(body, {
      chunk(chunk) {
        last = chunk;
        passed += chunk.length;
        observer.pushed(chunk);
        if (passed >= observer.waitsAt) waiting = chunk;
        else if (!out.write(chunk)) body.pause();
      },
      end() {
        const ended = observer.ended();
        if (ended) void ended.then(finish);
        else finish();
      },
      broke(error) {
        let text: string | undefined;
        try {
          if (!out.destroyed) observer.broke(error);
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
      observer.closed();
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
