import { isTerminal } from "../contracts/run-state.ts";
import type { LiveRun, LiveRuns } from "../runs/live-runs.ts";
import type { RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";

/**
 * The record of a run once it has ended, whichever process executes it, or as it is when the signal aborts; undefined if it was removed. Throws
 * errors of stores.
 */
export async function waitForEnd(
  { runs, live: liveRuns, hints }: Pick<WorkflowRuntime, "runs" | "live" | "hints">,
  runId: string,
  signal: AbortSignal,
): Promise<RunRecord | undefined> {
  const read = async (): Promise<RunRecord | undefined> => (await runs.find(runId))?.value;
  const live = liveRuns.enter(runId);
  const left = new AbortController();
  const until = AbortSignal.any([signal, left.signal]);
  try {
    const before = await read();
    if (!before || isTerminal(before.status)) return before;
    void hints?.watch(runId, until, () => catchUp({ runs, live: liveRuns }, live));
    await live.ledger.ended(until).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    return await read();
  } finally {
    left.abort();
    liveRuns.leave(live);
  }
}

/** Reads the entries that the executing process has written. Throws errors of stores. */
export async function catchUp(
  { runs, live: liveRuns }: { readonly runs: RunRecords; readonly live: LiveRuns },
  live: LiveRun,
): Promise<void> {
  if (liveRuns.knowsMore(live)) return;
  // One commit writes the record and the end of the ledger. So a ledger that is read after the record is complete.
  const run = await runs.find(live.ledger.runId);
  await live.ledger.refresh();
  if (!run || isTerminal(run.value.status)) live.ledger.close();
}
