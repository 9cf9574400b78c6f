import { ports } from "@portico/core";
import { workName } from "../../runs/work-name.ts";
import { insist } from "../insist.ts";
import { isGivenUp } from "../is-given-up.ts";
import { type Attempt, type NodePlay, parseInput, withRetries } from "../play-attempts.ts";
import type { NodeResult } from "../play-node.ts";
import { toldInTime } from "../told-in-time.ts";
import { NodeInterrupted } from "../running.ts";

interface AgentInput {
  readonly agent: string;
  readonly prompt: string;
  readonly maxTurns: number;
  readonly toolIds?: readonly string[] | undefined;
}

const RESTART = "process_restart";

/** Gives an agent a turn in the background and waits for its end. */
export function playAgent(play: NodePlay): Promise<NodeResult> {
  const { running, node, nodeId } = play;
  const { context, world, record, definition } = running;
  const { agent: agentId, prompt, maxTurns, toolIds } = parseInput(node.rules, play.inputs) as AgentInput;
  return withRetries(play, async (attempt): Promise<Attempt> => {
    const { turns } = world;
    const signal = workName(nodeId, `turn #${attempt}`);
    const userId = record.userId ?? (await world.owner(context.signal));
    if (!turns || userId === undefined)
      throw new ports.NodeFailed("agents_unavailable", "No agents are configured in this instance", { retryable: false });
    const start = () =>
      insist(running, () =>
        turns.start({
          ...{ agentId, userId, prompt, toolIds, maxTurns },
          origin: { origin: "workflow", displayName: definition.name },
          workflowDepth: record.depth ?? 0,
          // The same after a crash, so that nothing is started twice.
          key: `${record.runId} ${nodeId} ${attempt}`,
          tell: { workId: record.runId, signal },
        }),
      );
    const { runId } = await context.step(workName(nodeId, `start #${attempt}`), start, { repeatable: true });
    try {
      const ended = await toldInTime<ports.BackgroundTurnEnd>(play, signal);
      if (!ended) throw new ports.NodeFailed("timeout", "The agent took too long", { retryable: false });
      if (ended.status === "completed") return { isOk: true, output: { text: ended.output, runId } };
      const isRestart = ended.reason === RESTART || ended.failure?.code === RESTART;
      // It was executing when its process ended: it may have done anything (workflow.md: an agent is not repeatable by itself).
      if (isRestart && !node.idempotent) throw new NodeInterrupted(nodeId);
      return {
        isOk: false,
        code: `agent_${ended.status}`,
        message: ended.failure?.message ?? ended.reason ?? `The agent's turn ${ended.status}`,
        isFinal: false,
      };
    } catch (error) {
      if (isGivenUp(play, error)) await insist(running, () => turns.stop(runId, "workflow_over"));
      throw error;
    }
  });
}
