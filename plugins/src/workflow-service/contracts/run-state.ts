/** Specification 2.4. */
export const RUN_STATUSES = ["running", "waiting_human", "completed", "failed", "cancelled", "interrupted"] as const;
/** Status of a run (specification 2.4). */
export type RunStatus = (typeof RUN_STATUSES)[number];

type RunEvent = "gate-opened" | "gates-closed" | "completed" | "failed" | "cancelled" | "interrupted";

const ENDS = { completed: "completed", failed: "failed", cancelled: "cancelled", interrupted: "interrupted" } as const;

/** Whether nothing can happen to a run any more (specification 3.2). */
export function isTerminal(status: RunStatus): boolean {
  return status in ENDS;
}

/** The status after an event; what has ended stays as it is. */
export function advanceRun(status: RunStatus, event: RunEvent): RunStatus {
  if (isTerminal(status)) return status;
  if (event === "gate-opened") return "waiting_human";
  if (event === "gates-closed") return "running";
  return ENDS[event];
}
