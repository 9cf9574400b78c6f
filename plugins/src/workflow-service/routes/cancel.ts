import { isTerminal } from "../runs/run-state.ts";
import { toServiceError } from "../service/start-runs.ts";
import { grantedRun } from "./granted-run.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Cancels a run. */
export function cancel(services: WorkflowServices): WorkflowHandlers["cancel"] {
  return async ({ params, head, fail }) => {
    const { run, actor } = await grantedRun(services, params, head);
    const { runId, status } = run;
    if (isTerminal(status)) throw fail.run_ended();
    let isCancelled: boolean;
    try {
      const cancelRun = () => services.runtime.cancelRun(runId, "cancelled by request");
      const fact = { action: "workflow-run.cancel", object: runId, who: actor };
      isCancelled = await (services.audit?.attempt(fact, cancelRun) ?? cancelRun());
    } catch (error) {
      throw toServiceError(error);
    }
    if (!isCancelled) throw fail.run_ended();
    return { runId, accepted: true };
  };
}
