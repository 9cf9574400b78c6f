import { ports, type Say } from "@portico/core";
import type { workflowServiceContract } from "./contract.ts";
import { workflowErrors } from "./errors.ts";
import { type RunEvent, toRunEvent } from "./run-events.ts";
import { readChunks } from "./runs/ledger.ts";
import type { LiveRun, LiveRuns } from "./runs/live-runs.ts";
import type { ReaderMark, RunHints } from "./runs/run-hints.ts";
import type { RunRecord, RunRecords } from "./runs/run-records.ts";
import { isTerminal } from "./runs/run-state.ts";

type SayEvent = Say<(typeof workflowServiceContract)["events"]["success"]["events"]>;

/**
 * All events of a run that a living process accepted or executes. For an ended run, only its end (specification 6.1). If a new reader begins,
 * the stream of the earlier reader ends. Readers read the log at their own speed, and do not block writers.
 */
export async function* followRun(given: {
  readonly run: RunRecord;
  readonly runs: RunRecords;
  readonly live: LiveRuns;
  readonly log: ports.EventLog;
  readonly say: SayEvent;
  /** Set if several processes share the runs. */
  readonly shared?: { readonly hints: RunHints; readonly mark: ReaderMark } | undefined;
  readonly signal: AbortSignal;
}): AsyncGenerator<RunEvent, void> {
  const { run, runs, live: liveRuns, log, say, shared } = given;
  const { runId, workflowId, name, nodeCount } = run;
  const live = liveRuns.enter(runId);
  const takenOver = new AbortController();
  const signal = AbortSignal.any([given.signal, takenOver.signal]);
  const reader = shared?.hints.read(runId, shared.mark, () => takenOver.abort());
  try {
    live.unsubscribe?.();
    live.unsubscribe = () => takenOver.abort();
    if (liveRuns.knowsMore(live)) await live.ledger.recall();
    else await live.ledger.refresh();
    // The run may have ended since its record was read.
    const before = isTerminal(run.status) ? run : ((await runs.find(runId))?.value ?? run);
    let ended = before;
    if (!isTerminal(before.status)) {
      void shared?.hints.watch(runId, signal, () => catchUp(given, live));
      yield say["workflow:started"]({ workflowId, runId, name, nodeCount });
      for await (const entry of live.ledger.read({ follow: true, signal })) {
        const event = toRunEvent(runId, entry);
        if (event) yield event;
      }
      ended = (await runs.find(runId))?.value ?? before;
      // The run's process is stopping. Its end will be in its history.
      if (!isTerminal(ended.status)) return;
      const { error } = ended;
      if (error) {
        const { nodeId, code, message } = error;
        yield say["workflow:error"]({ runId, error: { code, message }, ...(nodeId !== undefined && { nodeId }) });
      }
    }
    const finalOutputs = await readFinalOutputs(log, runId);
    yield say["workflow:complete"]({
      runId,
      workflowId,
      status: ended.status,
      ...(finalOutputs !== undefined && { finalOutputs }),
    });
  } catch (thrown) {
    // Another reader took over, the reader has left, or the app closes. These are not errors.
    if (signal.aborted) return;
    throw thrown instanceof ports.LogUnavailable || thrown instanceof ports.RecordsUnavailable
      ? workflowErrors.store_unavailable(undefined, undefined, thrown)
      : thrown;
  } finally {
    reader?.close();
    leave(liveRuns, live, takenOver);
  }
}

/** The final outputs of a run; undefined if it has no outputs. Throws LogUnavailable. */
export async function readFinalOutputs(log: ports.EventLog, runId: string): Promise<unknown> {
  for await (const { finalOutputs } of readChunks(log, runId, { backwards: true, limit: 1 })) return finalOutputs;
  return undefined;
}

/** Reads the entries that the executing process has written. Throws errors of stores. */
async function catchUp(
  { runs, live: liveRuns }: { readonly runs: RunRecords; readonly live: LiveRuns },
  live: LiveRun,
): Promise<void> {
  if (liveRuns.knowsMore(live)) return;
  // One commit writes the record and the end of the ledger. So a ledger that is read after the record is complete.
  const run = await runs.find(live.ledger.runId);
  await live.ledger.refresh();
  if (!run || isTerminal(run.value.status)) live.ledger.close();
}

function leave(liveRuns: LiveRuns, live: LiveRun, own: AbortController): void {
  own.abort();
  liveRuns.leave(live);
}
