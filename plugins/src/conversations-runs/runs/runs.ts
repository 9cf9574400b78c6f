import { createRunIndex, type ports } from "@portico/core";
import type { Run } from "./run.ts";
import { runIndex } from "./run-search.ts";
import { advanceRun, type RunEvent } from "./run-state.ts";

export type { Run } from "./run.ts";

export type Runs = ReturnType<typeof createRuns>;

/** The runs of an instance. Ids begin with the time of the run, except those of keys. */
export function createRuns(records: ports.Records) {
  return {
    ...createRunIndex(records, runIndex),
    writeAll: (writes: readonly ports.Write[]): Promise<void> => records.batch(writes),
  };
}

/** A run after an event at this time (ISO 8601). */
export function withEvent(run: Run, event: RunEvent, at: string, facts: Partial<Run> = {}): Run {
  const status = advanceRun(run.status, event);
  const {
    completed_at: _completed,
    failure_reason: _reason,
    failure: _failure,
    interruption_reason: _why,
    interrupted_at: _at,
    retry_at: _retry,
    ...rest
  } = run;
  const { approvals: _approvals, ...kept } = event === "turn-began" ? rest : run;
  return { ...kept, status, updatedAt: at, ...facts };
}

/** Whether another attempt of the run's background turn is planned. */
export const isPlanned = ({ retry_at }: Run): boolean => retry_at !== undefined;
