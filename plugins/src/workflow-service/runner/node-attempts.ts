import { addModelUsage, orAborted, ports } from "@portico/core";
import { ExpressionFailed } from "../expressions/expression.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import { evaluated, holds } from "./node-values.ts";
import { workName } from "../runs/run-id.ts";
import { type Attempt, AttemptsFailed } from "./attempt.ts";
import { type NodePlay, type NodeResult, isWoundUp } from "./running.ts";

/** Tries until an attempt succeeds. The node's `retry` sets the number of attempts and the delays. Throws AttemptsFailed. */
export async function withRetries(play: NodePlay, once: (attempt: number) => Promise<Attempt>): Promise<NodeResult> {
  const { running, node, nodeId, frame } = play;
  const { attempts, delayMs, factor, maxDelayMs } = node.retry;
  let delay = delayMs;
  for (let attempt = 1; ; attempt++) {
    const result = await once(attempt);
    if (result.usage) running.live.usage = addModelUsage(running.live.usage, result.usage);
    if (result.isOk) {
      return { output: result.output, attempts: attempt, startedAt: result.startedAt, endedAt: result.endedAt };
    }
    const { code, message, isFinal, answer, retryAfterMs = 0 } = result;
    const error = { code, message, ...answer };
    if (isFinal || attempt >= attempts) throw new AttemptsFailed(error, attempt);
    const refused = await refusedBy(play, error);
    if (refused) throw new AttemptsFailed(refused, attempt);
    // A server knows best when it can answer again.
    const pause = Math.min(Math.max(delay, retryAfterMs), maxDelayMs, play.left());
    await orAborted(running.context.sleep(workName(nodeId, `#${attempt} pause`), pause), frame.signal);
    delay = Math.min(delay * factor, maxDelayMs);
  }
}

/** The error of the node, if its `retry.if` retries no such error. The condition is decided again after a crash: from the stored error. */
async function refusedBy({ running, node, frame }: NodePlay, error: NodeError): Promise<NodeError | undefined> {
  const { condition } = node.retry;
  if (!condition) return undefined;
  // Conditions can compare what some errors lack.
  const named = { status: null, body: null, bodyTruncated: false, ...error };
  try {
    const isRetried = await evaluated(running, { ...frame, error: named }, [condition], (scope) => holds(condition, scope));
    return isRetried ? undefined : error;
  } catch (thrown) {
    if (!(thrown instanceof ExpressionFailed)) throw thrown;
    // The node keeps the code of what it met.
    return { ...error, message: `${error.message} (not retried: ${thrown.message})` };
  }
}

/** The signal that a node waits for. Undefined if the node's or the run's time elapses first. A parallel gate may prolong that time. */
export async function signalInTime<T>({ running, frame, left }: NodePlay, name: string): Promise<T | undefined> {
  for (;;) {
    const signal = await orAborted(running.context.waitFor<T>(name, { timeoutMs: left() }), frame.signal);
    if (signal !== undefined || left() <= 0) return signal;
  }
}

/** Whether a node stopped waiting because the node itself ends. False if its process stops, or parks the run to free memory. */
export function isGivenUp({ running, frame }: NodePlay, error: unknown): boolean {
  const { signal } = running.context;
  if (signal.reason instanceof ports.WorkCancelled || isWoundUp(running, frame)) return true;
  return !signal.aborted && error instanceof ports.NodeFailed && error.code === "timeout";
}
