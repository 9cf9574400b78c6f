import { addModelUsage, orAborted } from "@portico/core";
import { workName } from "../runs/work-name.ts";
import type { Attempt } from "./attempt.ts";
import { AttemptsFailed } from "./attempts-failed.ts";
import type { NodePlay, NodeResult } from "./running.ts";

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
    if (isFinal || attempt >= attempts) throw new AttemptsFailed({ code, message, ...answer }, attempt);
    // A server knows best when it can answer again.
    const pause = Math.min(Math.max(delay, retryAfterMs), maxDelayMs, play.left());
    await orAborted(running.context.sleep(workName(nodeId, `#${attempt} pause`), pause), frame.signal);
    delay = Math.min(delay * factor, maxDelayMs);
  }
}
