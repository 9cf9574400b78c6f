import { hasAtMost, type ports } from "@portico/core";
import { RUN_ID_CHARACTERS } from "../limits.ts";
import type { Run, Runs } from "../runs/runs.ts";

/** Whether a text has the form of a run's id. */
export function isRunId(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text);
}

/** Undefined for a run that this caller may not see: to a member, others' runs are missing (open points 10). */
export async function visibleRun(runs: Runs, who: ports.Caller, runId: string): Promise<Run | undefined> {
  const run = isRunId(runId) && hasAtMost(RUN_ID_CHARACTERS, runId) ? (await runs.find(runId))?.value : undefined;
  return run && (who.role === "owner" || (who.userId !== undefined && run.user_id === who.userId)) ? run : undefined;
}
