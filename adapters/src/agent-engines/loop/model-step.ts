import type { ports } from "@portico/core";
import type { CallOptions, FunctionTool, LanguageModel, Prompt, StreamPart } from "./language-model.ts";
import { AnswerInProgress, type ModelAnswer } from "./model-answer.ts";
import { toModelError, toStreamError } from "./model-error.ts";
import { ModelRefused } from "./model-refused.ts";

export interface ModelQuestion {
  readonly model: LanguageModel;
  readonly provider: ports.ModelProvider;
  readonly prompt: Prompt;
  readonly tools: readonly FunctionTool[];
  readonly clock: ports.Clock;
  /** Options besides prompt, tools and signal. */
  readonly settings: Partial<CallOptions>;
}

type Say = (saying: Extract<ports.Saying, { delta: string }>) => void | Promise<void>;

/** Maximum retries of a call, as long as no part of its answer was reported. */
const RETRIES = 2;
const RETRY_MS = 500;
/** If the provider asks for a longer wait than this, the user gets the error instead. */
const LONGEST_WAIT_MS = 30_000;
const ENDED_EARLY: ReadonlySet<string> = new Set(["ModelUnreachable", "AnswerBroken"]);

/**
 * One model call. Its output is reported as it arrives. Temporary refusals, broken connections and broken answers are retried if
 * nothing was reported yet. Throws ModelRefused, ModelOverloaded, ModelUnreachable, ModelTimeout, AnswerBroken, or the signal's
 * reason.
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
  { model, provider, prompt, tools, settings }: ModelQuestion,
  signal: AbortSignal,
  say: Say,
): Promise<ModelAnswer> {
  const { stream: parts } = await model.doStream({
    ...settings,
    prompt,
    abortSignal: signal,
    ...(tools.length > 0 && { tools: [...tools] }),
  });
  const answer = new AnswerInProgress();
  const reader = (parts as ReadableStream<StreamPart>).getReader();
  try {
    for (;;) {
      const { done, value: part } = await reader.read().catch((error: unknown) => {
        signal.throwIfAborted();
        throw toStreamError(error, provider);
      });
      signal.throwIfAborted();
      if (done) return answer.finish();
      if (part.type === "error") throw toStreamError(part.error, provider);
      const saying = answer.take(part);
      if (saying) await say(saying);
    }
  } finally {
    // Cancelling early destroys the answer. At its end, this has no effect.
    reader.cancel().catch(() => {});
  }
}

/** Milliseconds to wait before a retry. Undefined: no retry. */
function waitFor(error: Error, retry: number): number | undefined {
  if (retry >= RETRIES) return undefined;
  const isPassing = error instanceof ModelRefused ? error.isPassing : ENDED_EARLY.has(error.name);
  const wait = (error instanceof ModelRefused ? error.retryAfterMs : undefined) ?? RETRY_MS * 2 ** retry;
  return isPassing && wait <= LONGEST_WAIT_MS ? wait : undefined;
}
