import { ports, type ReconnectTime, type Say } from "@portico/core";
import type { workflowServiceContract } from "./contract.ts";
import { workflowErrors } from "./errors.ts";
import { RECONNECT_MS, STAY_AWAY_MS } from "./limits.ts";
import { runEventId, type RunPlace } from "./run-event-ids.ts";
import { type RunEvent, toRunEvent } from "./run-events.ts";
import { readChunks } from "./runs/ledger.ts";
import type { LiveRun, LiveRuns } from "./runs/live-runs.ts";
import type { ReaderMark, RunHints } from "./runs/run-hints.ts";
import type { RunError, RunRecord } from "./runs/run-record.ts";
import type { RunRecords } from "./runs/run-records.ts";
import { isTerminal } from "./runs/run-state.ts";

type SayEvent = Say<(typeof workflowServiceContract)["events"]["success"]["events"]>;

/**
 * All events of a run that a living process accepted or executes. For an ended run, only its end (specification 6.1). A reader that names its
 * last event gets the events after it, also of an ended run. If a new reader begins, the stream of the earlier reader ends, and its client is
 * told to wait long before it connects again. Readers read the log at their own speed, and do not block writers.
 */
export async function* followRun(given: {
  readonly run: RunRecord;
  /** The last event of the reader's earlier stream, from its `Last-Event-ID`. */
  readonly after: RunPlace | undefined;
  readonly runs: RunRecords;
  readonly live: LiveRuns;
  readonly log: ports.EventLog;
  readonly say: SayEvent;
  /** Set if several processes share the runs. */
  readonly shared?: { readonly hints: RunHints; readonly mark: ReaderMark } | undefined;
  readonly signal: AbortSignal;
}): AsyncGenerator<RunEvent | ReconnectTime, void> {
  const { run, after, runs, live: liveRuns, log, say, shared } = given;
  const { runId, workflowId, name, nodeCount } = run;
  const live = liveRuns.enter(runId);
  const takenOver = new AbortController();
  const signal = AbortSignal.any([given.signal, takenOver.signal]);
  const reader = shared?.hints.read(runId, shared.mark, () => takenOver.abort());
  // Where another process may continue the run, only the positions of stored entries are final.
  const isStored = shared !== undefined;
  try {
    live.unsubscribe?.();
    live.unsubscribe = () => takenOver.abort();
    if (liveRuns.knowsMore(live)) await live.ledger.recall();
    else await live.ledger.refresh();
    // The run may have ended since its record was read.
    const before = isTerminal(run.status) ? run : ((await runs.find(runId))?.value ?? run);
    const hasEnded = isTerminal(before.status);
    // An id that this run has not sent is ignored.
    const from = typeof after === "number" && after <= live.ledger.count({ isStored }) ? after : undefined;
    const hasEntries = !hasEnded || from !== undefined;
    if (!hasEnded) {
      void shared?.hints.watch(runId, signal, () => catchUp(given, live));
      yield { retryMs: RECONNECT_MS };
      if (from === undefined)
        yield { ...say["workflow:started"]({ workflowId, runId, name, nodeCount }), id: runEventId(runId, 0) };
    }
    if (hasEntries) {
      for await (const { position, entry } of live.ledger.read({ from: from ?? 0, follow: !hasEnded, isStored, signal })) {
        const event = toRunEvent(runId, entry);
        if (event) yield { ...event, id: runEventId(runId, position + 1) };
      }
    }
    const ended = hasEnded ? before : ((await runs.find(runId))?.value ?? before);
    // The run's process is stopping. Its end will be in its history.
    if (!isTerminal(ended.status)) return;
    if (hasEntries && ended.error) yield errorEvent(runId, ended.error, say);
    if (!hasEnded || after !== "complete") yield completeEvent(ended, await readFinalOutputs(log, runId), say);
    // Clients that connect again by themselves do so also after a normal end.
    yield { retryMs: STAY_AWAY_MS };
  } catch (thrown) {
    // Without this, two clients that connect again by themselves would take the stream over from each other for ever.
    if (takenOver.signal.aborted && !given.signal.aborted) yield { retryMs: STAY_AWAY_MS };
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

function errorEvent(runId: string, { code, message, nodeId }: RunError, say: SayEvent): RunEvent {
  const data = { runId, error: { code, message }, ...(nodeId !== undefined && { nodeId }) };
  return { ...say["workflow:error"](data), id: runEventId(runId, "error") };
}

function completeEvent({ runId, workflowId, status }: RunRecord, finalOutputs: unknown, say: SayEvent): RunEvent {
  const data = { runId, workflowId, status, ...(finalOutputs !== undefined && { finalOutputs }) };
  return { ...say["workflow:complete"](data), id: runEventId(runId, "complete") };
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
