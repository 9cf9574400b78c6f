import { ports } from "@portico/core";
import { childRunId } from "../../runs/run-id.ts";
import { workName } from "../../runs/work-name.ts";
import { insist } from "../insist.ts";
import { isGivenUp } from "../is-given-up.ts";
import { type Attempt, type NodePlay, parseInput, withRetries } from "../play-attempts.ts";
import { isNodeFailed, type NodeResult } from "../play-node.ts";
import { type ChildEnd, childSignal } from "../tell-parent.ts";
import { toldInTime } from "../told-in-time.ts";

interface ChildInput {
  readonly workflow: string;
  readonly parameters?: unknown;
}

/** Runs another workflow and waits for its end. A run that is cancelled, or over, takes those with it that it started. */
export function playChild(play: NodePlay): Promise<NodeResult> {
  const { running, node, nodeId } = play;
  const { context, world, record } = running;
  const { workflow, parameters = {} } = parseInput(node.rules, play.inputs) as ChildInput;
  return withRetries(play, async (attempt): Promise<Attempt> => {
    const runId = childRunId(record.runId, nodeId, attempt);
    const start = () =>
      refusalOf(() =>
        insist(running, () => world.startChild({ runId, workflowId: workflow, parameters, parent: record, nodeId })),
      );
    try {
      const refused = await context.step(workName(nodeId, `start #${attempt}`), start, { repeatable: true });
      if (refused) return refused;
      const ended = await toldInTime<ChildEnd>(play, childSignal(nodeId, runId));
      if (ended?.status === "completed") return { isOk: true, output: ended.outputs ?? null };
      if (!ended) throw new ports.NodeFailed("timeout", "The run took too long", { retryable: false });
      return {
        isOk: false,
        code: `workflow_${ended.status}`,
        message: `Run ${runId} of ${workflow} ended as ${ended.status}${ended.message ? `: ${ended.message}` : ""}`,
        isFinal: false,
      };
    } catch (error) {
      if (isGivenUp(play, error)) await insist(running, () => world.cancelRun(runId, `Run ${record.runId} is over`));
      throw error;
    }
  });
}

/** Why something cannot be started, as the engine can remember it. */
async function refusalOf(start: () => Promise<void>): Promise<Attempt | null> {
  try {
    await start();
    return null;
  } catch (error) {
    if (!isNodeFailed(error)) throw error;
    return { isOk: false, code: error.code, message: error.message, isFinal: !error.retryable };
  }
}
