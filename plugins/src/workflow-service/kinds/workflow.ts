import { jsonObject, ports, retryWhileStoreAway } from "@portico/core";
import * as v from "valibot";
import { endsItsRun } from "../definition/definition.ts";
import { secretPaths } from "../definition/secret-paths.ts";
import { filesIn } from "../files/run-files.ts";
import { isGivenUp, signalInTime, withRetries } from "../runner/node-attempts.ts";
import { isNodeFailed, type Attempt } from "../runner/attempt.ts";
import { openOutput, parseInput } from "../runner/node-values.ts";
import type { NodeKind } from "../runner/running.ts";
import { type ChildEnd, childSignal } from "../runner/notify-parent.ts";
import { childRunId, workName } from "../runs/run-id.ts";
import type { Mask } from "../secrecy/mask.ts";

const input = v.strictObject({
  workflow: v.pipe(
    v.string(),
    v.regex(/^[A-Za-z0-9_-]{1,64}$/, "The id of a workflow is 1-64 letters, digits, `_` and `-`"),
    v.description("Id of the workflow to run. Its outputs become the node's output."),
  ),
  parameters: v.optional(v.pipe(jsonObject, v.description("Parameters of the run; default: no parameters.")), {}),
});

/** Runs another workflow and waits for its end. If a run is cancelled or ends, the runs that it started are cancelled. */
export const workflowKind: NodeKind = {
  type: "workflow",
  input,
  // Repeatable, because the started run is found again.
  repeatable: true,
  waits: true,
  secretInputs({ workflow, parameters }, services) {
    const schema = services.parametersOf(String(workflow));
    return schema && secretPaths(schema, parameters)?.map((path) => ["parameters", ...path]);
  },
  play(play) {
    const { running, node, nodeId } = play;
    const { context, services, record, secrecy } = running;
    const { workflow, parameters } = parseInput(input, play.inputs);
    return withRetries(play, async (attempt): Promise<Attempt> => {
      const runId = childRunId(record.runId, nodeId, attempt);
      const child = {
        runId,
        workflowId: workflow,
        parameters,
        parent: record,
        nodeId,
        isAnew: endsItsRun(running.definition, nodeId),
        attempt,
        attempts: node.retry.attempts,
        sensitive: node.sensitive,
        secrecy,
      };
      const start = () =>
        refusalOf(() => retryWhileStoreAway(running.storeRetry, () => services.startChild(child)), secrecy.mask);
      try {
        const refused = await context.step(workName(nodeId, `start #${attempt}`), start, { repeatable: true });
        if (refused) return refused;
        const ended = await signalInTime<ChildEnd>(play, childSignal(nodeId, runId));
        if (ended?.status === "completed") {
          const output = (await openOutput(running, { output: ended.outputs, hidden: ended.hidden })) ?? null;
          // What the node's run made may be used here, too.
          await retryWhileStoreAway(running.storeRetry, async () => running.files?.shareFrom(runId, filesIn(output)));
          return { isOk: true, output };
        }
        if (!ended) throw new ports.NodeFailed("timeout", "The run took too long", { retryable: false });
        return {
          isOk: false,
          code: `workflow_${ended.status}`,
          message: `Run ${runId} of ${workflow} ended with status ${ended.status}${ended.message ? `: ${ended.message}` : ""}`,
          isFinal: false,
        };
      } catch (error) {
        if (isGivenUp(play, error))
          await retryWhileStoreAway(running.storeRetry, () => services.cancelRun(runId, `Run ${record.runId} has ended`));
        throw error;
      }
    });
  },
};

/** Why a run cannot be started, in a form that the engine can store. */
async function refusalOf(start: () => Promise<void>, mask: Mask): Promise<Attempt | null> {
  try {
    await start();
    return null;
  } catch (error) {
    if (!isNodeFailed(error)) throw error;
    return { isOk: false, code: error.code, message: mask(error.message), isFinal: !error.retryable };
  }
}
