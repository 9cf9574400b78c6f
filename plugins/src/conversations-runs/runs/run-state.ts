/** Specification 3.3: idle means not executing now, able to await another turn, and no success. */
export type RunStatus = "running" | "idle" | "completed" | "failed";

export type RunEvent = "turn-began" | "turn-completed" | "turn-interrupted" | "turn-put-off" | "turn-failed" | "closed";

/**
 * All transitions of a run. A failed run can go on with another turn of its session; a closed one, whose conversation was cleared or whose
 * delegated task is done, cannot.
 */
export const runTransitions: Readonly<Record<RunStatus, Readonly<Partial<Record<RunEvent, RunStatus>>>>> = {
  idle: { "turn-began": "running", closed: "completed" },
  running: { "turn-completed": "idle", "turn-interrupted": "idle", "turn-put-off": "idle", "turn-failed": "failed" },
  failed: { "turn-began": "running", closed: "failed" },
  completed: { closed: "completed" },
};

/** The status after an event. Throws RangeError for an impossible transition. */
export function advanceRun(status: RunStatus, event: RunEvent): RunStatus {
  const next = runTransitions[status][event];
  if (next === undefined) throw new RangeError(`A run that is ${status} cannot take ${event}`);
  return next;
}
