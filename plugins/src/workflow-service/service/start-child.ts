import { ports, ServiceError } from "@portico/core";
import type { Catalogue } from "../definition/open-catalogue.ts";
import type { ChildRun } from "../runner/running.ts";
import { depthBelow, TOO_DEEP } from "../runs/run-depth.ts";
import type { StartRun } from "./start-runs.ts";

/** Starts runs for `workflow` nodes. The same run id again is the same run, and no error. */
export function createStartChild({ catalogue, startRun }: { readonly catalogue: Catalogue; readonly startRun: StartRun }) {
  return async ({ runId, workflowId, parameters, parent, nodeId, sensitive, secrecy }: ChildRun): Promise<void> => {
    const definition = catalogue.find(workflowId);
    if (!definition) throw new ports.NodeFailed("workflow_not_found", `There is no workflow ${workflowId}`);
    const depth = depthBelow(parent.depth ?? 0);
    if (depth === undefined) throw new ports.NodeFailed("workflow_too_deep", TOO_DEEP, { retryable: false });
    if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters))
      throw new ports.NodeFailed("invalid_input", "with.parameters: expected an object", { retryable: false });
    try {
      const { bindingId, boardId, taskId, userId } = parent;
      await startRun({
        ...{ definition, parameters: parameters as Readonly<Record<string, unknown>>, runId, userId },
        binding: bindingId === undefined ? undefined : { id: bindingId, boardId, taskId },
        parent: { runId: parent.runId, nodeId, ...(sensitive && { sensitive }) },
        ...{ depth, secrecy },
      });
    } catch (error) {
      // It was started before, and the process died before it was remembered.
      if (error instanceof ports.RecordConflict) return;
      if (ServiceError.is(error) && error.code === "invalid_parameters")
        throw new ports.NodeFailed("invalid_parameters", `${error.message}: ${JSON.stringify(error.details)}`, {
          retryable: false,
          cause: error,
        });
      throw error;
    }
  };
}
