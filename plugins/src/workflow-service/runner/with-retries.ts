import { orAborted } from "@portico/core";
import { workName } from "../runs/work-name.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import { AttemptsFailed } from "./attempts-failed.ts";
import type { NodePlay, NodeResult } from "./running.ts";

/** The stored result of an attempt. It includes the times, so that history does not change after a resume. */
export type Attempt =
  | {
      readonly isOk: true;
      readonly output: unknown;
      /** The secret parts of a stored output. */
      readonly hidden?: Hidden | undefined;
      readonly startedAt?: number | undefined;
      readonly endedAt?: number | undefined;
    }
  | { readonly isOk: false; readonly code: string; readonly message: string; readonly isFinal: boolean };

/** Tries until an attempt succeeds. The node's `retry` sets the number of attempts and the delays. Throws AttemptsFailed. */
export async function withRetries(play: NodePlay, once: (attempt: number) => Promise<Attempt>): Promise<NodeResult> {
  const { running, node, nodeId, frame } = play;
  const { attempts, delayMs, factor, maxDelayMs } = node.retry;
  let delay = delayMs;
  for (let attempt = 1; ; attempt++) {
    const result = await once(attempt);
    if (result.isOk) {
      return { output: result.output, attempts: attempt, startedAt: result.startedAt, endedAt: result.endedAt };
    }
    const { code, message, isFinal } = result;
    if (isFinal || attempt >= attempts) throw new AttemptsFailed({ code, message }, attempt);
    const pause = Math.min(delay, maxDelayMs, play.left());
    await orAborted(running.context.sleep(workName(nodeId, `#${attempt} pause`), pause), frame.signal);
    delay = Math.min(delay * factor, maxDelayMs);
  }
}
