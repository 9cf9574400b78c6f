import { CallFailed } from "@portico/core/client";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { describeFailure } from "../../../api/describe-failure.ts";
import type { Instance } from "../../../api/instance.ts";
import { PageFailure } from "../../../api/page-failure.ts";
import type { Provider } from "../../providers/ProviderTable.svelte";
import type { AnswerFacts, AnswerUsage, AssistantTurn, Protocol } from "../conversation.ts";
import { type ModelRequest, requestBody } from "../request-body.ts";
import type { ArrivingAnswer } from "./arriving-answer.ts";
import { readChatChunk, readCompletion } from "./chat-answer.ts";
import { readMessage, readMessagesEvent } from "./messages-answer.ts";

/** A request, to whom it goes, and the prices there. */
export interface ModelCall {
  readonly request: ModelRequest;
  readonly provider: Provider;
  readonly currency: string | undefined;
}

/** How a call ended. */
export interface EndedCall {
  readonly facts: AnswerFacts;
  /** Why it failed. */
  readonly problem?: string;
}

/** Calls a model, and adds the parts of its answer to the turn as they arrive. Never rejects. */
export async function callModel(
  { proxy }: Instance,
  { request, provider, currency }: ModelCall,
  turn: AssistantTurn,
  signal: AbortSignal,
): Promise<EndedCall> {
  const body = requestBody(request);
  const into: ArrivingAnswer = { parts: turn.parts, usage: {}, stopReason: undefined };
  let first: number | undefined;
  let dropped: string | undefined;
  let began = performance.now();
  let outcome: AnswerFacts["outcome"] = "completed";
  let problem: string | undefined;
  try {
    const client = proxy.client(await proxy.token(provider.id));
    signal.throwIfAborted();
    began = performance.now();
    const response = await (request.protocol === "messages"
      ? client.messages({ body, signal })
      : client.chatCompletions({ body, signal }));
    dropped = response.headers.get("x-portico-dropped") ?? undefined;
    const arrived = () => {
      if (into.parts.length > 0) first ??= performance.now();
    };
    if (request.isStream) await readStream(request.protocol, response.body!, into, arrived);
    else readWhole(request.protocol, (await response.json()) as object, into);
  } catch (error) {
    outcome = signal.aborted ? "stopped" : "failed";
    if (outcome === "failed") problem = describeProblem(error);
    // The token was revoked elsewhere: the next call issues another.
    if (CallFailed.is(error) && error.status === 401) proxy.forget();
  }
  const totalMs = performance.now() - began;
  const price = provider.prices?.find(({ model }) => model === request.model);
  const cost = costOf(into.usage, price);
  const facts = {
    ...{ outcome, totalMs, usage: into.usage },
    ...(first !== undefined && { firstMs: first - began }),
    ...(into.stopReason !== undefined && { stopReason: into.stopReason }),
    ...(dropped !== undefined && { dropped }),
    ...(cost !== undefined && { cost }),
    ...(currency !== undefined && { currency }),
  };
  return { facts, ...(problem !== undefined && { problem }) };
}

/** The sentence of the provider or of the proxy, and the status that a program would get. */
function describeProblem(error: unknown): string {
  const sentence = describeFailure(error);
  if (!CallFailed.is(error) || sentence.includes(String(error.status))) return sentence;
  return `${sentence} (status ${error.status})`;
}

type Price = NonNullable<Provider["prices"]>[number];

const MILLION = 1_000_000;

/** The cost of a call. Undefined without a price, and if the provider did not report the tokens. */
function costOf({ input, output, cachedInput = 0, cacheWrite = 0 }: AnswerUsage, price: Price | undefined): number | undefined {
  if (!price || input === undefined || output === undefined) return undefined;
  const fresh = Math.max(0, input - cachedInput - cacheWrite);
  const ofInput =
    fresh * price.input + cachedInput * (price.cachedInput ?? price.input) + cacheWrite * (price.cacheWrite ?? price.input);
  return (ofInput + output * price.output) / MILLION;
}

/**
 * Adds an answer's events to it as they arrive, and calls `arrived` after each. Throws the stream's own error. Also throws if the stream
 * ends without the mark of a normal end: status 200 and a started answer do not prove success (specification 4.1).
 */
async function readStream(
  protocol: Protocol,
  body: ReadableStream<BufferSource>,
  into: ArrivingAnswer,
  arrived: () => void,
): Promise<void> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data) as AnyEvent;
    if (event.error) throw new PageFailure(event.error.message ?? "The stream failed");
    if (event.type === "message_stop") return;
    if (protocol === "messages") readMessagesEvent(event, into);
    else readChatChunk(event, into);
    arrived();
  }
  // Some providers of Chat Completions do not send the end marker.
  if (protocol === "messages" || into.stopReason === undefined)
    throw new PageFailure("The stream ended before the answer was complete");
}

type AnyEvent = Parameters<typeof readMessagesEvent>[0] &
  Parameters<typeof readChatChunk>[0] & { readonly error?: { readonly message?: string } };

/** Adds a whole answer. */
function readWhole(protocol: Protocol, answer: object, into: ArrivingAnswer): void {
  if (protocol === "messages") readMessage(answer, into);
  else readCompletion(answer, into);
}
