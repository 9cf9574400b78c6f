import { readCompletedNodeCount } from "../runs/ledger.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { isTerminal } from "../runs/run-state.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/** How many nodes of a run have completed, if it executes: its record is older. Throws LogUnavailable. */
export function completedNodesIn({ log, runtime: { live, hints } }: WorkflowServices) {
  return async ({ runId, status }: RunRecord): Promise<number | undefined> => {
    const found = live.find(runId);
    if (found?.isExecuting || !hints || isTerminal(status)) return found?.completedNodeCount;
    return readCompletedNodeCount(log, runId);
  };
}
