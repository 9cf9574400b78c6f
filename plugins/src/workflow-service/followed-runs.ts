import type { LedgerEntry } from "./runs/ledger-entry.ts";
import { catchUp } from "./service/wait-for-end.ts";
import { isTerminal } from "./contracts/run-state.ts";
import type { WorkflowRuntime } from "./workflow-runtime.ts";

export { isTerminal } from "./contracts/run-state.ts";
export { readFinalOutputs } from "./routes/events.ts";
export { toServiceError } from "./service/start-runs.ts";
export type { LedgerEntry } from "./runs/ledger-entry.ts";
export type { RunRecord } from "./runs/run-record.ts";

/**
 * The history of a run from its beginning, then what is added, whichever process executes it. Ends when the run has ended: its record is read
 * then. Any number of readers may follow a run in this way. Throws errors of stores, and the reason of the signal.
 */
export async function* entriesUntilEnd(
  { runs, live: liveRuns, hints }: Pick<WorkflowRuntime, "runs" | "live" | "hints">,
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
