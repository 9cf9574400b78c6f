import type { RunRecord } from "./run-record.ts";
import { isTerminal } from "./run-state.ts";

/** Whether another run may resume this run, as it is shown. `newer`: the run that resumes it, if there is one. */
export function isResumable(run: RunRecord, newer: RunRecord | undefined): boolean {
  if (run.resumedBy && !(newer && hasNoResults(newer))) return false;
  return isResumableEnd(run) && run.isComplete === true && !run.parent;
}

/**
 * Whether the status of a run allows to resume it. A cancelled run is only resumed if it resumes another run. It has the results of that run, and
 * the nodes that it finished itself must not be repeated.
 */
export function isResumableEnd({ status, resumes }: RunRecord): boolean {
  return status === "failed" || status === "interrupted" || (status === "cancelled" && resumes !== undefined);
}

/** Whether a run that resumes another ended before it had taken over the results. It executed no node, so the other run is resumed again. */
export function hasNoResults({ status, isComplete }: RunRecord): boolean {
  return isTerminal(status) && !isComplete;
}
