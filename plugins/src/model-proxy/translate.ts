import type { Readable } from "node:stream";
import { passStream, type ports, ServiceError } from "@portico/core";
import {
  ANSWER_BYTES,
  AnswerFailed,
  createDecoder,
  errorBody,
  errorStatus,
  type ModelError,
  type ModelEvent,
  readAnyAnswer,
  readErrorText,
  readUpstreamError,
  readWholeAnswer,
  type RequestBytes,
  stopAt,
  type StreamReader,
  writeChatCompletion,
  writeChatStream,
  writeExactly,
  writeMessage,
  writeMessagesStream,
} from "@portico/core/model-protocols";
import type { ProxyCall } from "./call-record.ts";
import { proxyErrors } from "./errors.ts";
import { convertedAnswerHeaders, convertedRequestHeaders, droppedHeader } from "./header-filter.ts";
import type { Protocol } from "./protocol.ts";
import type { RequestConverter } from "./request-converter.ts";
import { recordUsage, redactErrors, streamTranslation } from "./stream-translation.ts";
import { callFailure, relayError } from "./upstream-error.ts";

export interface TranslateServices {
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly converter: RequestConverter;
}

const TOO_DEEP: ModelError = { kind: "upstream", message: "The provider's answer is nested too deeply" };

/** Caller and provider use different protocols: the request and the answer are converted. Streams are converted while they arrive. */
export async function translate(
  call: ProxyCall,
  { bytes, model }: { readonly bytes: Buffer; readonly model: string },
  services: TranslateServices,
): Promise<void> {
  const { protocol, provider, exchange, record } = call;
  const facts = provider.facts?.(model) ?? {};
  const request = await services.converter.convert(protocol, bytes, facts);
  record.sending();
  const first = await send(call, model, request);
  // One refused part would make each later request of the conversation fail.
  const refusal = isRefusal(first) ? await readErrorText(first) : undefined;
  const error = refusal === undefined ? undefined : readUpstreamError(provider.protocol, first.status, refusal);
  const lighter = error && (await services.converter.lighten(provider.protocol, request, { status: first.status, error }));
  const answer = lighter ? await send(call, model, lighter) : first;
  record.answered(answer.status, request.isStream);
  if (answer.status < 200 || answer.status > 299)
    return relayError({ protocol, provider, exchange, answer, ...(answer === first && { text: refusal }) });

  const { dropped, stopSequences } = lighter ?? request;
  const stop = stopAt(stopSequences);
  const headers = {
    ...convertedAnswerHeaders(answer.headers, provider),
    ...droppedHeader([...dropped, ...(answer.dropped ?? [])]),
  };
  const names = {
    id: services.ids.id(protocol === "messages" ? "msg_" : "chatcmpl-"),
    model,
    created: Math.floor(services.clock.now() / 1000),
    isLegacy: request.isLegacy,
  };
  if (request.isStream) {
    const writer =
      protocol === "messages" ? writeMessagesStream(names) : writeChatStream({ ...names, includeUsage: request.includeUsage });
    return streamTranslation({
      body: decodedBody(answer),
      reader: through(readAnyAnswer(provider.protocol, answer.headers), (events) =>
        restoreNames(stop(events), request.toolNames),
      ),
      writer,
      record,
      headers,
      provider,
      exchange,
      clock: services.clock,
    });
  }
  const events = redactErrors(restoreNames(stop(await readWhole(provider, answer)), request.toolNames), provider);
  recordUsage(record, events);
  const { status, text } = writeWhole(protocol, events, names);
  if (status !== 200) record.broke("upstream_error");
  exchange
    .respond(status, {
      ...headers,
      "content-type": "application/json; charset=utf-8",
      "content-length": String(Buffer.byteLength(text)),
    })
    .end(text);
}

function send(call: ProxyCall, model: string, { body, isStream }: RequestBytes): Promise<ports.ModelAnswer> {
  const { provider, exchange, own, trail, traceparent, signal } = call;
  const headers = {
    ...convertedRequestHeaders(exchange.headers, own, isStream),
    ...trail,
    ...(traceparent !== undefined && { traceparent }),
  };
  return provider.send({ headers, query: "", model, body }, signal).catch(callFailure);
}

function isRefusal({ status }: ports.ModelAnswer): boolean {
  return status >= 400 && status < 500;
}

/** The events with the caller's names of tools. */
function restoreNames(events: readonly ModelEvent[], names: ReadonlyMap<string, string>): readonly ModelEvent[] {
  if (names.size === 0) return events;
  return events.map((event) => (event.type === "tool-start" ? { ...event, name: names.get(event.name) ?? event.name } : event));
}

function through(reader: StreamReader, change: (events: readonly ModelEvent[]) => readonly ModelEvent[]): StreamReader {
  return { push: (chunk) => change(reader.push(chunk)), end: () => change(reader.end()) };
}

/** The complete answer as events. */
async function readWhole(provider: ports.ModelProvider, answer: ports.ModelAnswer): Promise<readonly ModelEvent[]> {
  const whole = answer.whole && isPlain(answer) ? answer.whole : undefined;
  const read = whole && readWholeAnswer(provider.protocol, whole);
  if (read) return read;
  const reader = readAnyAnswer(provider.protocol, answer.headers);
  const events: ModelEvent[] = [];
  let size = 0;
  try {
    for await (const chunk of decodedBody(answer) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > ANSWER_BYTES) throw proxyErrors.upstream_invalid("The provider's answer is too long");
      events.push(...reader.push(chunk));
    }
  } catch (error) {
    const isBroken = answer.body.errored !== null || ServiceError.is(error);
    answer.body.destroy();
    // A complete answer that cannot be decoded does not have the encoding of its Content-Encoding header.
    return callFailure(isBroken ? error : proxyErrors.upstream_invalid(undefined, undefined, error));
  }
  return [...events, ...reader.end()];
}

function writeWhole(
  protocol: Protocol,
  events: readonly ModelEvent[],
  names: { id: string; model: string; created: number; isLegacy: boolean },
): { readonly status: number; readonly text: string } {
  try {
    const body = protocol === "messages" ? writeMessage(events, names) : writeChatCompletion(events, names);
    return { status: 200, text: writeExactly(body) };
  } catch (error) {
    // A tool's arguments can be nested too deeply for JSON.stringify. Callers could not use such an answer.
    const failure = error instanceof RangeError ? new AnswerFailed(TOO_DEEP) : error;
    if (!(failure instanceof AnswerFailed)) throw failure;
    return { status: errorStatus(protocol, failure.error.kind), text: JSON.stringify(errorBody(protocol, failure.error)) };
  }
}

function decodedBody(answer: ports.ModelAnswer): Readable {
  const decoder = decoderOf(answer);
  return decoder ? passStream(answer.body, decoder) : answer.body;
}

function decoderOf(answer: ports.ModelAnswer): ReturnType<typeof createDecoder> {
  try {
    return createDecoder(answer.headers["content-encoding"]);
  } catch (cause) {
    answer.body.destroy();
    throw proxyErrors.upstream_invalid(undefined, undefined, cause);
  }
}

function isPlain(answer: ports.ModelAnswer): boolean {
  const encoding = answer.headers["content-encoding"];
  return (encoding === undefined || encoding === "identity") && answer.whole!.length <= ANSWER_BYTES;
}
