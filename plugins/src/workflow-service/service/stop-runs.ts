import type { ports } from "@portico/core";
import type { World } from "../runner/running.ts";
import { tellParent } from "../runner/tell-parent.ts";
import { endedRun, type RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../runs/run-state.ts";

/** Cancels a run, durably. False where it has ended or never was. Throws what stores throw. */
export function createCancelRun(given: {
  readonly engine: ports.Engine;
  readonly runs: RunRecords;
  readonly clock: ports.Clock;
}) {
  const { engine, runs } = given;
  return async (runId: string, reason: string): Promise<boolean> => {
    const isCancelled = await engine.cancel(runId, reason);
    if (isCancelled) await settleRun(given, runId);
    return isCancelled && (await runs.find(runId)) !== undefined;
  };
}

/**
 * Ends the record of a run of which the engine will never tell: it was cancelled before it began, or the process died between the engine's end
 * and the record's. Answers whether there was anything to do.
 */
export async function settleRun(
  { engine, runs, clock }: { readonly engine: ports.Engine; readonly runs: RunRecords; readonly clock: ports.Clock },
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
    : { code: "lost", message: "The engine does not know the run any more" };
  await tellParent(engine, stored.value, { status, message: error.message });
  await runs.change(runId, (run) =>
    endedRun(run, { status, at: clock.now(), error, completedNodeCount: run.completedNodeCount }),
  );
  return true;
}

/** At a start: settles what the last process left between two commits. */
export async function settleRuns(
  given: { readonly engine: ports.Engine; readonly runs: RunRecords; readonly clock: ports.Clock; readonly log: World["log"] },
  closing: AbortSignal,
): Promise<void> {
  try {
    for await (const page of given.runs.active()) {
      for (const { runId } of page) {
        if (closing.aborted) return;
        await settleRun(given, runId);
      }
    }
  } catch (error) {
    if (!closing.aborted) given.log.error("Runs that an earlier process left could not be looked through", {}, error);
  }
}
