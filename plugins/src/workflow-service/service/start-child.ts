import { ports, ServiceError } from "@portico/core";
import { type Definition, outermost } from "../definition/definition.ts";
import type { ChildRun } from "../runner/running.ts";
import { childRunId } from "../runs/run-id.ts";
import type { RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { planChild, type Planning, resumedRun } from "./plan-resume.ts";
import { depthBelow, isOverflow, readParameters, type RunOrder, type StartRun, TOO_DEEP } from "./start-runs.ts";

type Values = Readonly<Record<string, unknown>>;

/** Starts runs for `workflow` nodes. The same run id again is the same run, and no error. */
export function createStartChild(
  given: Planning & {
    readonly startRun: StartRun;
    readonly runs: RunRecords;
  },
) {
  const { catalogue, startRun, runs, definitions } = given;
  return async (child: ChildRun): Promise<void> => {
    const { workflowId } = child;
    const earlier = await earlierChild(runs, child);
    const isCurrent = child.parent.resumes?.isCurrent === true;
    const held = earlier && !isCurrent ? await definitions.hold(workflowId, earlier.definition) : undefined;
    try {
      const definition = held ? held.definition : catalogue.find(workflowId);
      await start(child, definition, earlier);
    } finally {
      held?.release();
    }
  };

  async function start(
    { runId, workflowId, parameters, parent, nodeId, sensitive, secrecy }: ChildRun,
    definition: Definition | undefined,
    earlier: RunRecord | undefined,
  ): Promise<void> {
    if (!definition) throw new ports.NodeFailed("workflow_not_found", `There is no workflow ${workflowId}`);
    const depth = depthBelow(parent.depth ?? 0);
    if (depth === undefined) throw new ports.NodeFailed("workflow_too_deep", TOO_DEEP, { retryable: false });
    if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters))
      throw new ports.NodeFailed("invalid_input", "with.parameters: expected an object", { retryable: false });
    try {
      const { bindingId, boardId, taskId, userId, grantUserId } = parent;
      const resuming = earlier && (await resumeOf(earlier, { runId, definition, parameters: parameters as Values, parent }));
      await startRun({
        ...{ definition, parameters: parameters as Values, runId, userId, grantUserId },
        binding: bindingId === undefined ? undefined : { id: bindingId, boardId, taskId },
        parent: { runId: parent.runId, nodeId, ...(sensitive && { sensitive }) },
        ...{ depth, secrecy },
        ...resuming,
      });
    } catch (error) {
      // It was started before, and the process died before it was remembered.
      if (error instanceof ports.RecordConflict) return;
      if (ServiceError.is(error) && error.code === "invalid_parameters")
        throw new ports.NodeFailed("invalid_parameters", `${error.message}: ${JSON.stringify(error.details)}`, {
          retryable: false,
          cause: error,
        });
      if (isOverflow(error)) throw new ports.NodeFailed(error.code, error.message, { cause: error });
      throw error;
    }
  }

  /** With the present definition, its nodes may have changed. */
  async function resumeOf(
    earlier: RunRecord,
    order: {
      readonly runId: string;
      readonly definition: Definition;
      readonly parameters: Values;
      readonly parent: RunRecord;
    },
  ): Promise<Pick<RunOrder, "resumes" | "read">> {
    const { runId, definition, parent } = order;
    if (!parent.resumes?.isCurrent) return { resumes: resumedRun(earlier, { newId: runId }) };
    const read = await readParameters(given, definition, order.parameters);
    return { read, resumes: await planChild(given, earlier, { runId, definition, parameters: read.value }) };
  }
}

/**
 * The last run that this node started in the run that its own run resumes, or in an earlier run of that chain. The new run resumes it. After that,
 * a retry begins anew, as in every run.
 */
async function earlierChild(runs: RunRecords, child: ChildRun): Promise<RunRecord | undefined> {
  const { parent, nodeId, isAnew, attempt, attempts } = child;
  if (isAnew || !parent.resumes || (await lastChild(runs, child, parent.runId, attempt - 1))) return undefined;
  const node = outermost(nodeId);
  for (let resumes: RunRecord["resumes"] = parent.resumes; resumes && !resumes.repeat?.includes(node);) {
    const found = await lastChild(runs, child, resumes.runId, attempts);
    if (found) return found;
    resumes = (await runs.find(resumes.runId))?.value.resumes;
  }
  return undefined;
}

/** The run that the last of these attempts of a node started. An attempt may have ended before it started a run. */
async function lastChild(
  runs: RunRecords,
  { nodeId, workflowId }: ChildRun,
  parentId: string,
  attempts: number,
): Promise<RunRecord | undefined> {
  for (let attempt = attempts; attempt > 0; attempt--) {
    const found = (await runs.find(childRunId(parentId, nodeId, attempt)))?.value;
    if (found?.workflowId === workflowId) return found;
  }
  return undefined;
}
