import { ports } from "@portico/core";
import type { FunctionTool, LanguageModel, Prompt, StreamPart } from "./language-model.ts";
import { ModelRefused } from "./model-refused.ts";

/** What one model call brought, as a durable step remembers it. */
export interface ModelAnswer {
  readonly parts: readonly ports.MessagePart[];
  /** Tool calls in their order; `arguments` is undefined where they were no JSON. */
  readonly calls: readonly { readonly callId: string; readonly name: string; readonly arguments?: unknown }[];
  readonly usage: Omit<ports.TurnUsage, "modelCalls">;
}

export interface ModelQuestion {
  readonly model: LanguageModel;
  readonly provider: ports.ModelProvider;
  readonly prompt: Prompt;
  readonly tools: readonly FunctionTool[];
  readonly clock: ports.Clock;
  readonly maxOutputTokens?: number | undefined;
}

type Say = (saying: Extract<ports.Saying, { delta: string }>) => void | Promise<void>;

/** How often a call is made again, as long as nothing of its answer was said. */
const RETRIES = 2;
const RETRY_MS = 500;
/** Who is asked to wait longer than this tells the user instead. */
const LONGEST_WAIT_MS = 30_000;

/**
 * One model call: what it says is said as it comes. Refusals that pass and broken connections are tried again before anything was said.
 * Throws ModelRefused, ModelUnreachable, ModelTimeout, or the signal's reason.
 */
export async function callModel(question: ModelQuestion, say: Say, signal: AbortSignal): Promise<ModelAnswer> {
  for (let retry = 0; ; retry++) {
    let isSaid = false;
    try {
      return await stream(question, signal, (saying) => {
        isSaid = true;
        return say(saying);
      });
    } catch (error) {
      signal.throwIfAborted();
      const refused = toModelError(error, question.provider);
      const wait = waitFor(refused, retry);
      if (isSaid || wait === undefined) throw refused;
      await question.clock.sleep(wait, signal);
    }
  }
}

async function stream(
  { model, prompt, tools, maxOutputTokens }: ModelQuestion,
  signal: AbortSignal,
  say: Say,
): Promise<ModelAnswer> {
  const { stream: parts } = await model.doStream({
    prompt,
    abortSignal: signal,
    ...(tools.length > 0 && { tools: [...tools] }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  });
  const answer = new AnswerInProgress();
  for await (const part of parts as ReadableStream<StreamPart>) {
    signal.throwIfAborted();
    if (part.type === "error") throw part.error;
    const saying = answer.take(part);
    if (saying) await say(saying);
  }
  signal.throwIfAborted();
  return answer.finish();
}

/** Puts the pieces of a streamed answer together. */
class AnswerInProgress {
  readonly #parts: ports.MessagePart[] = [];
  readonly #calls: ModelAnswer["calls"][number][] = [];
  #thinking: { text: string; signature?: string; redacted?: string } | undefined;
  #text: { text: string } | undefined;
  #usage: ModelAnswer["usage"] = {};
  #isFinished = false;

  take(part: StreamPart): Extract<ports.Saying, { delta: string }> | undefined {
    switch (part.type) {
      case "text-start":
        this.#text = { text: "" };
        return undefined;
      case "text-delta":
        if (this.#text) this.#text.text += part.delta;
        return part.delta === "" ? undefined : { type: "text", delta: part.delta };
      case "text-end":
        if (this.#text?.text) this.#parts.push({ type: "text", text: this.#text.text });
        this.#text = undefined;
        return undefined;
      case "reasoning-start":
        this.#thinking = { text: "", ...signed(part.providerMetadata) };
        return undefined;
      case "reasoning-delta":
        if (this.#thinking)
          Object.assign(this.#thinking, { text: this.#thinking.text + part.delta, ...signed(part.providerMetadata) });
        return part.delta === "" ? undefined : { type: "thinking", delta: part.delta };
      case "reasoning-end":
        if (this.#thinking) this.#parts.push({ type: "thinking", ...this.#thinking, ...signed(part.providerMetadata) });
        this.#thinking = undefined;
        return undefined;
      case "tool-call":
        this.#calls.push({ callId: part.toolCallId, name: part.toolName, ...argumentsOf(part.input) });
        return undefined;
      case "finish": {
        const { inputTokens, outputTokens } = part.usage;
        this.#usage = {
          inputTokens: inputTokens.total,
          outputTokens: outputTokens.total,
          cachedInputTokens: inputTokens.cacheRead,
          reasoningTokens: outputTokens.reasoning,
        };
        this.#isFinished = true;
        return undefined;
      }
      default:
        return undefined;
    }
  }

  /** Throws where the stream ended without its end: what came is not the whole answer. */
  finish(): ModelAnswer {
    if (!this.#isFinished) throw new ports.ModelUnreachable("The provider's answer broke off");
    return { parts: this.#parts, calls: this.#calls, usage: this.#usage };
  }
}

function signed(metadata: Readonly<Record<string, unknown>> | undefined): { signature?: string; redacted?: string } {
  const { signature, redactedData } = (metadata?.["anthropic"] ?? {}) as { signature?: unknown; redactedData?: unknown };
  return {
    ...(typeof signature === "string" && { signature }),
    ...(typeof redactedData === "string" && { redacted: redactedData }),
  };
}

function argumentsOf(input: string): { readonly arguments?: unknown } {
  try {
    return { arguments: input.trim() === "" ? {} : (JSON.parse(input) as unknown) };
  } catch {
    return {};
  }
}

/** How long to wait before the call is made again; undefined: not at all. */
function waitFor(error: Error, retry: number): number | undefined {
  if (retry >= RETRIES) return undefined;
  const isPassing = error instanceof ModelRefused ? error.isPassing : error.name === "ModelUnreachable";
  const wait = (error instanceof ModelRefused ? error.retryAfterMs : undefined) ?? RETRY_MS * 2 ** retry;
  return isPassing && wait <= LONGEST_WAIT_MS ? wait : undefined;
}

/** The port's own errors as they are; what the provider answered in its own words; of everything else none. */
export function toModelError(error: unknown, provider: ports.ModelProvider): Error {
  const chain: Error[] = [];
  for (let cause = error; cause instanceof Error && chain.length < 10; cause = cause.cause) chain.push(cause);
  const own = chain.find(({ name }) => name === "ModelUnreachable" || name === "ModelTimeout");
  if (own) return own;
  const answered = chain.find(({ name }) => name === "AI_APICallError") as ApiCallError | undefined;
  if (answered?.statusCode !== undefined && answered.statusCode >= 400) return refusalOf(answered, answered.statusCode, provider);
  return new ModelRefused("The provider answered with something that is not an answer", { isPassing: false }, { cause: error });
}

interface ApiCallError extends Error {
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly responseBody?: string;
}

const LONGEST_WORDS = 500;

function refusalOf(error: ApiCallError, status: number, provider: ports.ModelProvider): ModelRefused {
  const words = provider.redact(wordsOf(error)).slice(0, LONGEST_WORDS);
  const seconds = Number(error.responseHeaders?.["retry-after"] ?? Number.NaN);
  const facts = {
    status,
    isPassing: status === 429 || status === 408 || status >= 500,
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  };
  return new ModelRefused(`The provider refused the request with status ${status}: ${words}`, facts, { cause: error });
}

/** Providers that only look like the protocol's own put their sentence into a body that the library does not read. */
function wordsOf({ message, responseBody }: ApiCallError): string {
  try {
    const { error } = JSON.parse(responseBody ?? "") as { readonly error?: { readonly message?: unknown } };
    return typeof error?.message === "string" ? error.message : message;
  } catch {
    return message;
  }
}
