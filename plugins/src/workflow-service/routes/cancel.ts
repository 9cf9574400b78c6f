import { isTerminal } from "../runs/run-state.ts";
import { toServiceError } from "../service/start-runs.ts";
import { grantedRun } from "./granted-run.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Cancels a run. */
export function cancel(services: WorkflowServices): WorkflowHandlers["cancel"] {
  return async ({ params, head, fail }) => {
    const { runId, status } = await grantedRun(services, params, head);
    if (isTerminal(status)) throw fail.run_ended();
    let isCancelled: boolean;
    try {
      isCancelled = await services.runtime.cancelRun(runId, "cancelled by request");
    } catch (error) {
      throw toServiceError(error);
    }
    if (!isCancelled) throw fail.run_ended();
    return { runId, accepted: true };
  };
}
