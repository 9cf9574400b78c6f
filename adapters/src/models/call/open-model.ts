import { passStream, ports } from "@portico/core";
import {
  ConversionRefused,
  createDecoder,
  defaultMaxTokens,
  type JsonObject,
  type ModelEvent,
  readAnyAnswer,
  readErrorText,
  readUpstreamError,
  readWholeAnswer,
  stopAt,
  toBytes,
  withoutRefusedPart,
  writeRequest,
  type WrittenRequest,
} from "@portico/core/model-protocols";
import { refusalOf, streamErrorOf } from "./model-error.ts";
import { beginMeasured, type ModelMeter } from "./model-meter.ts";
import { AnswerBroken, ModelRefused } from "./model-refused.ts";
import type { ModelRequest } from "./model-request.ts";

/** One model of a provider. Each of its calls is measured. */
export interface Model {
  readonly id: string;
  readonly provider: ports.ModelProvider;
  /**
   * Sends one request and gives the events of its answer, as they arrive if `stream` is set. Leaving the loop aborts the call. Throws
   * ModelRefused, ModelOverloaded, AnswerBroken, ModelUnreachable, ModelTimeout, or the signal's reason.
   */
  ask(
    request: ModelRequest,
    options: { readonly stream: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<readonly ModelEvent[], void>;
}

/** Opens a model of a provider. */
export function openModel(provider: ports.ModelProvider, id: string, meter: ModelMeter): Model {
  return { id, provider, ask: (request, { stream }, signal) => ask({ provider, id, meter }, request, stream, signal) };
}

interface Asked {
  readonly provider: ports.ModelProvider;
  readonly id: string;
  readonly meter: ModelMeter;
}

async function* ask(
  asked: Asked,
  request: ModelRequest,
  stream: boolean,
  signal: AbortSignal,
): AsyncGenerator<readonly ModelEvent[], void> {
  const { provider, id, meter } = asked;
  const measured = await beginMeasured(provider, id, meter, signal);
  let isBegun = false;
  try {
    const written = write(asked, request, stream);
    measured.dropped(written.dropped);
    const { answer, dropped = [], stopSequences = written.stopSequences } = await send(asked, written, signal);
    measured.dropped([...dropped, ...(answer.dropped ?? [])]);
    isBegun = true;
    const names = written.toolNames;
    const stop = stopAt(stopSequences);
    for await (const read of eventsOf(provider, answer)) {
      measured.heard(read, stream);
      const events = stop(read);
      if (events.length === 0) continue;
      yield names.size === 0 ? events : events.map((event) => restored(event, names));
      const last = events.at(-1);
      if (last?.type === "error") throw streamErrorOf(provider, last.error);
    }
    measured.ended();
  } catch (error) {
    measured.ended(codeOf(error, signal, isBegun));
    signal.throwIfAborted();
    throw knownError(error, isBegun);
  } finally {
    // A reader that leaves before the end.
    measured.ended("aborted");
  }
}

function write({ provider, id }: Asked, request: ModelRequest, stream: boolean): WrittenRequest {
  const { protocol } = provider;
  const facts = provider.facts?.(id) ?? {};
  const { effort, outputSchema, temperature, max_tokens: limit, ...same } = request;
  const isThinking = effort !== undefined && effort !== "none";
  const config: JsonObject = {
    ...(isThinking && { effort }),
    ...(outputSchema && { format: { type: "json_schema", schema: outputSchema } }),
  };
  // Only Messages requires a limit, and takes no temperature above 1.
  const most = limit ?? (protocol === "messages" ? (facts.messages?.maxTokens ?? defaultMaxTokens(isThinking)) : undefined);
  const body = {
    model: id,
    ...same,
    ...(most !== undefined && { max_tokens: most }),
    ...(temperature !== undefined && { temperature: protocol === "messages" ? Math.min(temperature, 1) : temperature }),
    ...(effort !== undefined && { thinking: isThinking ? { type: "adaptive" } : { type: "disabled" } }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
    stream,
  } as unknown as JsonObject;
  try {
    const written = writeRequest("messages", body, protocol, facts);
    // Messages has no effort `none`, so the conversion cannot tell it from an effort that is not asked for.
    const { reasoning, thinkingSwitch } = facts.chat ?? ports.PUBLISHED_CHAT_DIALECT;
    const asksForNone =
      protocol === "chat-completions" && effort === "none" && reasoning === "effort" && thinkingSwitch === "none";
    return asksForNone ? { ...written, body: { ...written.body, reasoning_effort: "none" } } : written;
  } catch (error) {
    if (!(error instanceof ConversionRefused)) throw error;
    throw new ModelRefused(
      `The request cannot be expressed for this provider: ${error.message}`,
      { isPassing: false },
      { cause: error },
    );
  }
}

/**
 * The answer, with a status of success. A refusal that names a part of the request is answered once without the part, which `dropped` names.
 */
async function send(
  asked: Asked,
  written: WrittenRequest,
  signal: AbortSignal,
): Promise<{ readonly answer: ports.ModelAnswer } & Partial<Pick<WrittenRequest, "dropped" | "stopSequences">>> {
  const { provider } = asked;
  const first = await sendBody(asked, written.body, signal);
  if (isSuccess(first)) return { answer: first };
  const text = await readErrorText(first);
  const error = readUpstreamError(provider.protocol, first.status, text);
  const lighter = withoutRefusedPart(provider.protocol, written.body, first.status, error);
  const answer = lighter && (await sendBody(asked, lighter.body, signal));
  if (answer && isSuccess(answer)) return { ...lighter, answer };
  throw answer ? refusalOf(provider, answer, await readErrorText(answer)) : refusalOf(provider, first, text);
}

function sendBody({ provider, id, meter }: Asked, body: WrittenRequest["body"], signal: AbortSignal): Promise<ports.ModelAnswer> {
  const traceparent = meter.telemetry.traceparent?.();
  const headers = { "content-type": "application/json", ...(traceparent !== undefined && { traceparent }) };
  return provider.send({ headers, query: "", model: id, body: toBytes(body) }, signal);
}

function isSuccess({ status }: ports.ModelAnswer): boolean {
  return status >= 200 && status < 300;
}

async function* eventsOf(provider: ports.ModelProvider, answer: ports.ModelAnswer): AsyncGenerator<readonly ModelEvent[], void> {
  const { protocol } = provider;
  try {
    const decoder = createDecoder(answer.headers["content-encoding"]);
    const whole = answer.whole && !decoder ? readWholeAnswer(protocol, answer.whole) : undefined;
    if (whole) return yield whole;
    const reader = readAnyAnswer(protocol, answer.headers);
    const body = decoder ? passStream(answer.body, decoder) : answer.body;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const events = reader.push(chunk);
      if (events.length === 0) continue;
      yield events;
      if (isOver(events.at(-1))) return;
    }
    yield reader.end();
  } finally {
    answer.body.destroy();
  }
}

function isOver(event: ModelEvent | undefined): boolean {
  return event?.type === "finish" || event?.type === "error";
}

function restored(event: ModelEvent, names: ReadonlyMap<string, string>): ModelEvent {
  return event.type === "tool-start" ? { ...event, name: names.get(event.name) ?? event.name } : event;
}

const OWN: ReadonlySet<string> = new Set(["ModelUnreachable", "ModelTimeout", "ModelRefused", "ModelOverloaded", "AnswerBroken"]);

/** Errors of the port stay unchanged. All other errors get no text: they could quote the provider. */
function knownError(error: unknown, isBegun: boolean): Error {
  if (error instanceof Error && OWN.has(error.name))
    return isBegun && error.name === "ModelUnreachable" ? new AnswerBroken(undefined, { cause: error }) : error;
  if (isBegun) return new AnswerBroken(undefined, { cause: error });
  return new ModelRefused("The provider answered with something that is not an answer", { isPassing: false }, { cause: error });
}

/** The proxy's codes for the same failures. Messages are left out: they quote callers and providers. */
function codeOf(error: unknown, signal: AbortSignal, isBegun: boolean): string {
  if (signal.aborted) return "aborted";
  if (!(error instanceof Error)) return "upstream_error";
  if (error.name === "ModelTimeout") return "upstream_timeout";
  if (error.name === "ModelUnreachable") return isBegun ? "upstream_broken" : "upstream_unreachable";
  if (error.name === "AnswerBroken") return "upstream_broken";
  const { status } = error as { readonly status?: unknown };
  return typeof status === "number" && status >= 400 ? String(status) : "upstream_error";
}
