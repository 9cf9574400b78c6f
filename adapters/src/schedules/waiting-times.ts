import type { ports } from "@portico/core";

/** Planned times of a schedule that wait at most. */
const MOST_WAITING = 100;

/**
 * Those of the planned times that wait; oldest first. Of a cron expression, the oldest ones wait. Of an interval, the newest ones, as many as
 * `catchUp` says, and at least one: if it is shorter than what it starts, more would only make it later.
 */
export function mayWait(timing: ports.ScheduleTiming, catchUp: number, planned: readonly number[]): readonly number[] {
  if ("cron" in timing) return planned.slice(0, MOST_WAITING);
  return planned.slice(-Math.min(Math.max(1, catchUp), MOST_WAITING));
}
