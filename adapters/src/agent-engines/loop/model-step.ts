import type { ports } from "@portico/core";
import type { Model } from "../../models/call/open-model.ts";
import { ModelRefused } from "../../models/call/model-refused.ts";
import type { ModelRequest } from "../../models/call/model-request.ts";
import { AnswerInProgress, type ModelAnswer } from "./model-answer.ts";

export interface ModelQuestion {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly clock: ports.Clock;
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
      const wait = waitFor(error as Error, retry);
      if (isSaid || wait === undefined) throw error;
      await question.clock.sleep(wait, signal);
    }
  }
}

async function stream({ model, request }: ModelQuestion, signal: AbortSignal, say: Say): Promise<ModelAnswer> {
  const answer = new AnswerInProgress(model.provider.protocol);
  for await (const events of model.ask(request, { stream: true }, signal)) {
    for (const event of events) {
      const saying = answer.take(event);
      if (saying) await say(saying);
    }
    signal.throwIfAborted();
  }
  return answer.finish();
}

/** Milliseconds to wait before a retry. Undefined: no retry. */
function waitFor(error: Error, retry: number): number | undefined {
  if (retry >= RETRIES) return undefined;
  const isPassing = error instanceof ModelRefused ? error.isPassing : ENDED_EARLY.has(error.name);
  const wait = (error instanceof ModelRefused ? error.retryAfterMs : undefined) ?? RETRY_MS * 2 ** retry;
  return isPassing && wait <= LONGEST_WAIT_MS ? wait : undefined;
}
