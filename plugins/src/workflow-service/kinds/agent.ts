import { ports, retryWhileStoreAway } from "@portico/core";
import * as v from "valibot";
import { isGivenUp, signalInTime, withRetries } from "../runner/node-attempts.ts";
import { NodeInterrupted, type Attempt } from "../runner/attempt.ts";
import { parseInput } from "../runner/node-values.ts";
import type { NodeKind } from "../runner/running.ts";
import { workName } from "../runs/run-id.ts";

const name = v.pipe(v.string(), v.minLength(1, "This text is not empty"));

const input = v.strictObject({
  agent: v.pipe(name, v.description("Id of the agent.")),
  prompt: v.pipe(name, v.description("The prompt.")),
  maxTurns: v.optional(
    v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(1, "An agent takes 1 to 100 turns"),
      v.maxValue(100, "An agent takes 1 to 100 turns"),
      v.description("Maximum number of model calls; default 5."),
    ),
    5,
  ),
  toolIds: v.optional(v.pipe(v.array(name), v.description("Tools that it may use; default: the agent's own."))),
});

const RESTART = "process_restart";

/** Starts a turn of an agent in the background and waits for its end. */
export const agentKind: NodeKind = {
  type: "agent",
  input,
  // Not repeatable, because the effects of its tools cannot be undone.
  repeatable: false,
  waits: true,
  play(play) {
    const { running, node, nodeId } = play;
    const { context, services, record, definition } = running;
    const { agent: agentId, prompt, maxTurns, toolIds } = parseInput(input, play.inputs);
    return withRetries(play, async (attempt): Promise<Attempt> => {
      const { turns } = services;
      const signal = workName(nodeId, `turn #${attempt}`);
      if (!turns) throw unavailable();
      const start = async () => {
        // Only to start it: for work that was cancelled while it was parked, this would reject, and the turn would not be stopped.
        const userId = record.userId ?? (await services.owner(context.signal));
        if (userId === undefined) return null;
        return retryWhileStoreAway(running.storeRetry, () =>
          turns.start({
            // Turns are stored and shown with their prompts.
            ...{ agentId, userId, prompt: running.secrecy.mask(prompt), toolIds, maxTurns },
            origin: { origin: "workflow", displayName: definition.name },
            workflowDepth: record.depth ?? 0,
            // The id is the same after a crash, so that no turn is started twice.
            key: `${record.runId} ${nodeId} ${attempt}`,
            tell: { workId: record.runId, signal },
          }),
        );
      };
      const started = await context.step(workName(nodeId, `start #${attempt}`), start, { repeatable: true });
      if (!started) throw unavailable();
      const { runId } = started;
      try {
        const ended = await signalInTime<ports.BackgroundTurnEnd>(play, signal);
        if (!ended) throw new ports.NodeFailed("timeout", "The agent took too long", { retryable: false });
        const { usage } = ended;
        if (ended.status === "completed") return { isOk: true, output: { text: ended.output, runId }, usage };
        const isRestart = ended.reason === RESTART || ended.failure?.code === RESTART;
        // The turn was executing when its process ended, so its effects are unknown (workflow.md: an agent is not repeatable by itself).
        if (isRestart && !node.idempotent) throw new NodeInterrupted(nodeId);
        return {
          isOk: false,
          code: `agent_${ended.status}`,
          message: ended.failure?.message ?? ended.reason ?? `The agent's turn ${ended.status}`,
          isFinal: false,
          usage,
        };
      } catch (error) {
        if (isGivenUp(play, error)) await retryWhileStoreAway(running.storeRetry, () => turns.stop(runId, "workflow_over"));
        throw error;
      }
    });
  },
};

function unavailable(): ports.NodeFailed {
  return new ports.NodeFailed("agents_unavailable", "No agents are configured in this instance", { retryable: false });
}
