import type { Readable } from "node:stream";
import { passStream, ports, ServiceError } from "@portico/core";
import {
  AnswerFailed,
  errorBody,
  errorStatus,
  isJsonObject,
  type ModelError,
  type ModelEvent,
  parseExactly,
  readChatCompletion,
  readChatStream,
  readMessage,
  readMessagesStream,
  type StreamReader,
  upstreamFailure,
  writeChatCompletion,
  writeChatStream,
  writeExactly,
  writeMessage,
  writeMessagesStream,
} from "@portico/core/model-protocols";
import type { ProxyCall } from "./call-record.ts";
import { createDecoder } from "./content-encoding.ts";
import { proxyErrors } from "./errors.ts";
import { convertedAnswerHeaders, convertedRequestHeaders, droppedHeader } from "./header-filter.ts";
import { ANSWER_BYTES } from "./limits.ts";
import type { Protocol } from "./protocol.ts";
import type { RequestConverter } from "./request-converter.ts";
import { recordUsage, redactErrors, streamTranslation } from "./stream-translation.ts";
import { callFailure, relayError } from "./upstream-error.ts";

export interface TranslateServices {
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly converter: RequestConverter;
}

/** Leaves out a byte order mark. */
const TEXT = new TextDecoder();
const TOO_DEEP: ModelError = { kind: "upstream", message: "The provider's answer is nested too deeply" };

/** Caller and provider use different protocols: the request and the answer are converted. Streams are converted while they arrive. */
export async function translate(
  call: ProxyCall,
  { bytes, model }: { readonly bytes: Buffer; readonly model: string },
  services: TranslateServices,
): Promise<void> {
  const { protocol, provider, exchange, own, trail, traceparent, signal, record } = call;
  const request = await services.converter.convert(protocol, bytes, provider.dialect ?? ports.PUBLISHED_CHAT_DIALECT);
  record.sending();
  const answer = await provider
    .send(
      {
        headers: {
          ...convertedRequestHeaders(exchange.headers, own, request.isStream),
          ...trail,
          ...(traceparent !== undefined && { traceparent }),
        },
        query: "",
        body: request.body,
      },
      signal,
    )
    .catch(callFailure);
  record.answered(answer.status, request.isStream);
  if (answer.status < 200 || answer.status > 299) return relayError({ protocol, provider, exchange, answer });

  const headers = {
    ...convertedAnswerHeaders(answer.headers, provider),
    ...droppedHeader([...request.dropped, ...(answer.dropped ?? [])]),
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
      reader: withNames(readerFor(provider, answer), request.toolNames),
      writer,
      record,
      headers,
      provider,
      exchange,
      clock: services.clock,
    });
  }
  const events = redactErrors(restoreNames(await readWhole(provider, answer), request.toolNames), provider);
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

/** The events with the caller's names of tools. */
function restoreNames(events: readonly ModelEvent[], names: ReadonlyMap<string, string>): readonly ModelEvent[] {
  if (names.size === 0) return events;
  return events.map((event) => (event.type === "tool-start" ? { ...event, name: names.get(event.name) ?? event.name } : event));
}

function withNames(reader: StreamReader, names: ReadonlyMap<string, string>): StreamReader {
  if (names.size === 0) return reader;
  return { push: (chunk) => restoreNames(reader.push(chunk), names), end: () => restoreNames(reader.end(), names) };
}

/**
 * Reads an answer that arrives in pieces: a stream, or a whole answer, whichever the upstream was asked for. Its first byte tells more than
 * its content type: gateways send streams as `application/json` or `text/plain`, and whole answers as `text/event-stream`.
 */
function readerFor(provider: ports.ModelProvider, answer: ports.ModelAnswer): StreamReader {
  let reader: StreamReader | undefined;
  return {
    push(chunk) {
      const first = reader ? undefined : firstByte(chunk);
      if (first !== undefined) reader = isStream(first, answer) ? streamReader(provider) : wholeReader(provider);
      return reader ? reader.push(chunk) : [];
    },
    end: () => (reader ?? (isEventStream(answer) ? streamReader(provider) : wholeReader(provider))).end(),
  };
}

function streamReader(provider: ports.ModelProvider): StreamReader {
  return provider.protocol === "messages" ? readMessagesStream() : readChatStream();
}

function wholeReader(provider: ports.ModelProvider): StreamReader {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return {
    push(chunk) {
      size += chunk.length;
      if (size > ANSWER_BYTES) return [upstreamFailure("The provider's answer is too long")];
      chunks.push(chunk);
      return [];
    },
    end: () => parseWhole(provider, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)),
  };
}

const BLANK: ReadonlySet<number> = new Set(Buffer.from(" \t\r\n\uFEFF"));
/** The first bytes of `data:`, `event:`, `id:`, `retry:` and of comments. */
const FIELD_STARTS: ReadonlySet<number> = new Set(Buffer.from("deir:"));
const OPEN_BRACE = 0x7b;

/** Undefined if the chunk has only white space. */
function firstByte(chunk: Uint8Array): number | undefined {
  return chunk.find((byte) => !BLANK.has(byte));
}

function isStream(first: number, answer: ports.ModelAnswer): boolean {
  return isEventStream(answer) ? first !== OPEN_BRACE : FIELD_STARTS.has(first);
}

/** The complete answer as events. */
async function readWhole(provider: ports.ModelProvider, answer: ports.ModelAnswer): Promise<readonly ModelEvent[]> {
  const whole = answer.whole && isPlain(answer) ? answer.whole : undefined;
  if (whole && firstByte(whole) === OPEN_BRACE) return parseWhole(provider, whole);
  const reader = readerFor(provider, answer);
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

function parseWhole(provider: ports.ModelProvider, bytes: Uint8Array): readonly ModelEvent[] {
  try {
    const body: unknown = parseExactly(TEXT.decode(bytes));
    if (isJsonObject(body)) return provider.protocol === "messages" ? readMessage(body) : readChatCompletion(body);
  } catch {
    // The upstream's answer is not JSON. It is not quoted, because it may contain any data.
  }
  return [upstreamFailure("The provider sent an invalid answer")];
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

function isEventStream(answer: ports.ModelAnswer): boolean {
  const type = answer.headers["content-type"];
  return typeof type === "string" && type.toLowerCase().startsWith("text/event-stream");
}

function isPlain(answer: ports.ModelAnswer): boolean {
  const encoding = answer.headers["content-encoding"];
  return (encoding === undefined || encoding === "identity") && answer.whole!.length <= ANSWER_BYTES;
}
