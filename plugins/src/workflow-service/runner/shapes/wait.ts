import { orAborted } from "@portico/core";
import { workName } from "../../runs/work-name.ts";
import { type NodePlay, parseInput } from "../play-attempts.ts";
import type { NodeResult } from "../play-node.ts";

/** Milliseconds, or ISO 8601. */
type WaitInput = { readonly for: number } | { readonly until: string };

/** Waits for a time, or until one; however long, it costs a record. */
export async function playWait(play: NodePlay): Promise<NodeResult> {
  const { running, node, nodeId, frame, inputs } = play;
  const { context, world } = running;
  const input = parseInput(node.rules, inputs) as WaitInput;
  const startedAt = await context.step(workName(nodeId, "begun"), async () => world.clock.now(), { repeatable: true });
  const waitedMs =
    "for" in input && input.for !== undefined
      ? input.for
      : Math.max(0, Date.parse((input as { until: string }).until) - startedAt);
  const left = () => startedAt + waitedMs - world.clock.now();
  // No longer than the run's own time: somebody must be there when it is over. A gate beside it may prolong that.
  for (let part = 1; left() > 0; part++) {
    const most = play.left();
    // Its end is the deadline's to tell.
    if (most <= 0) await orAborted(new Promise<never>(() => {}), frame.signal);
    await orAborted(context.sleep(workName(nodeId, part === 1 ? "wait" : `wait #${part}`), Math.min(left(), most)), frame.signal);
  }
  return { output: { waitedMs }, attempts: 1, startedAt };
}
