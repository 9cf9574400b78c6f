import type { ports } from "@portico/core";
import type { ListChanges } from "@portico/core/kit";
import type { LiveRuns } from "../runs/live-runs.ts";
import type { RunHints } from "../runs/run-hints.ts";
import { notifyParent } from "../runner/notify-parent.ts";
import { endedRun, type RunRecord } from "../runs/run-record.ts";
import type { PendingInputs } from "./pending-inputs.ts";
import type { RunSlots } from "./run-slots.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../contracts/run-state.ts";

interface Settling {
  readonly engine: ports.Engine;
  readonly runs: RunRecords;
  readonly live: LiveRuns;
  readonly clock: ports.Clock;
  readonly slots: RunSlots;
  readonly pendingInputs: PendingInputs;
  /** Where several processes share the runs. */
  readonly hints?: RunHints | undefined;
  /** Tells the followers of open gates. */
  readonly gateChanges: ListChanges;
}

/** Cancels a run, durably. False where it has ended or never was. Throws what stores throw. */
export function createCancelRun(given: Settling) {
  const { engine, runs } = given;
  return async (runId: string, reason: string): Promise<boolean> => {
    const isCancelled = await engine.cancel(runId, reason);
    // Also one that a call before cancelled whose answer was lost.
    const isSettled = await settleRun(given, runId);
    return isSettled || (isCancelled && (await runs.find(runId)) !== undefined);
  };
}

/** Settles the runs that a process left between two commits. Throws what stores throw. */
export async function settleRuns(given: Settling & { readonly instance: string }, closing: AbortSignal): Promise<void> {
  for await (const page of given.runs.active()) {
    for (const { runId, instance } of page) {
      if (closing.aborted) return;
      // A run that this process accepts may be in the records before the engine has it.
      if (instance !== given.instance) await settleRun(given, runId);
    }
  }
}

/**
 * Whether a run can be followed (specification 6.1, open points 11): the process that accepted it lives, or a living process executes it.
 * In an instance with one process, only the first condition counts: after a restart, no earlier run is live.
 */
export function createIsLive({
  engine,
  instance,
  isAlive,
}: {
  readonly engine: ports.Engine;
  readonly instance: string;
  readonly isAlive: (instance: string) => Promise<boolean | undefined>;
}): (run: RunRecord) => Promise<boolean> {
  return async (run) => {
    if (run.instance === instance) return true;
    if (engine.isShared && (await engine.status(run.runId))?.process !== undefined) return true;
    // If unknown at present, and the process died, the follower receives no event for a while. A wrong 404 would make it give up a run that
    // continues.
    return (await isAlive(run.instance)) ?? true;
  };
}

/**
 * Ends the record of a run whose end the engine will never report: it was cancelled before it began, or the process died between the
 * engine's end and the record's. Returns whether there was a record to end.
 */
async function settleRun(
  { engine, runs, live, clock, slots, pendingInputs, hints, gateChanges }: Settling,
  runId: string,
): Promise<boolean> {
  const work = await engine.status(runId);
  if (work && (work.state === "waiting" || work.state === "executing")) return false;
  const stored = await runs.find(runId);
  if (!stored || isTerminal(stored.value.status)) return false;
  const isCancelled = work?.state === "cancelled";
  const status = isCancelled ? ("cancelled" as const) : ("interrupted" as const);
  const error = isCancelled
    ? { code: "cancelled", message: work.error ?? "cancelled" }
    : { code: "lost", message: "The engine no longer knows the run" };
  const end = { status, at: clock.now(), error };
  // Before its end is written, because writing the end is not repeated. A repeated report has no effect.
  await notifyParent(engine, stored.value, { status, message: error.message });
  await slots.leave(stored.value, async (writes) => {
    const ended = (run: RunRecord) => endedRun(run, { ...end, completedNodeCount: run.completedNodeCount });
    await runs.change(runId, ended, async () => [...(await pendingInputs.leave(stored.value)), ...writes]);
  });
  // No other code notifies the followers.
  live.find(runId)?.ledger.close();
  hints?.notify(runId);
  if (stored.value.gates) gateChanges.notify();
  return true;
}
