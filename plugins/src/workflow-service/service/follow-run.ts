import { isTerminal } from "../contracts/run-state.ts";
import type { LedgerEntry } from "../runs/ledger-entry.ts";
import type { LiveRun, LiveRuns } from "../runs/live-runs.ts";
import type { RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";

/** What following a run needs of the runtime. */
type FollowedRuns = Pick<WorkflowRuntime, "runs" | "live" | "hints">;

/**
 * The history of a run from its beginning, then what is added, whichever process executes it. Ends when the run has ended: its record is read
 * then. Any number of readers may follow a run in this way. Throws errors of stores, and the reason of the signal.
 */
export async function* entriesUntilEnd(
  { runs, live: liveRuns, hints }: FollowedRuns,
  runId: string,
  signal: AbortSignal,
): AsyncGenerator<LedgerEntry, void> {
  const live = liveRuns.enter(runId);
  const left = new AbortController();
  const until = AbortSignal.any([signal, left.signal]);
  try {
    if (liveRuns.knowsMore(live)) await live.ledger.recall();
    else await live.ledger.refresh();
    const run = (await runs.find(runId))?.value;
    const follow = run !== undefined && !isTerminal(run.status);
    if (follow) void hints?.watch(runId, until, () => catchUp({ runs, live: liveRuns }, live));
    // Where another process may continue the run, only the positions of stored entries are final.
    const isStored = hints !== undefined;
    for await (const { entry } of live.ledger.read({ follow, isStored, signal })) yield entry;
  } finally {
    left.abort();
    liveRuns.leave(live);
  }
}

/**
 * The record of a run once it has ended, whichever process executes it, or as it is when the signal aborts; undefined if it was removed. Throws
 * errors of stores.
 */
export async function waitForEnd(runtime: FollowedRuns, runId: string, signal: AbortSignal): Promise<RunRecord | undefined> {
  const read = async () => (await runtime.runs.find(runId))?.value;
  const before = await read();
  if (!before || isTerminal(before.status)) return before;
  try {
    for await (const _entry of entriesUntilEnd(runtime, runId, signal));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return read();
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
