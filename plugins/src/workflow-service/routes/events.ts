import { ports, type ReconnectTime, type Say, type EventOf } from "@portico/core";
import { isReadable } from "../access/task-scope.ts";
import { readerOf, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import type { workflowServiceContract } from "../contract.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { RECONNECT_MS, STAY_AWAY_MS } from "../contracts/limits.ts";
import { readChunks } from "../runs/ledger.ts";
import { catchUp } from "../service/follow-run.ts";
import type { LiveRun, LiveRuns } from "../runs/live-runs.ts";
import type { ReaderMark, RunHints } from "../runs/run-hints.ts";
import type { RunError, RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../contracts/run-state.ts";
import type { LedgerEntry } from "../runs/ledger-entry.ts";

/** Sends the events of a run: the past events, or those after the `Last-Event-ID`, then the live ones. */
export function followEvents(services: WorkflowServices): WorkflowHandlers["events"] {
  const { log, closing, runtime, clock, ids } = services;
  const { runs, live, hints, isLive } = runtime;
  return async ({ query: { runId }, head, signal, say, fail }) => {
    if (typeof runId !== "string" || runId === "") throw fail.run_id_required();
    const run = (await runs.find(runId).catch(toStoreError))?.value;
    // 4.2: a run that may not be read counts as missing. 6.1: a run of a dead process has no live events.
    if (!run || !isReadable(run, await readerOf(services, signal))) throw fail.run_not_found();
    if (!(await isLive(run).catch(toStoreError))) throw fail.run_not_found();
    const shared = hints && { hints, mark: { at: clock.now(), id: ids.uuid() } };
    const after = readEventCursor(runId, head.header("last-event-id"));
    return followRun({ run, after, runs, live, log, say, shared, signal: AbortSignal.any([signal, closing]) });
  };
}

type SayEvent = Say<(typeof workflowServiceContract)["events"]["success"]["events"]>;

/**
 * All events of a run that a living process accepted or executes. For an ended run, only its end (specification 6.1). A reader that names its
 * last event gets the events after it, also of an ended run. If a new reader begins, the stream of the earlier reader ends, and its client is
 * told to wait long before it connects again. Readers read the log at their own speed, and do not block writers.
 */
async function* followRun(given: {
  readonly run: RunRecord;
  /** The last event of the reader's earlier stream, from its `Last-Event-ID`. */
  readonly after: EventCursor | undefined;
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

function leave(liveRuns: LiveRuns, live: LiveRun, own: AbortController): void {
  own.abort();
  liveRuns.leave(live);
}

/** One event of a run as it is sent (specification 6.1). */
type RunEvent = EventOf<(typeof workflowServiceContract)["events"]["success"]["events"]>;

/** The event of a ledger entry. Skipped and cancelled nodes have no events. */
function toRunEvent(runId: string, entry: LedgerEntry): RunEvent | undefined {
  const { nodeId } = entry;
  switch (entry.kind) {
    case "start": {
      const { type, name } = entry;
      return { event: "workflow:node_start", data: { runId, nodeId, type, ...(name !== undefined && { name }) } };
    }
    case "gate": {
      const { kind: _kind, ...gate } = entry;
      return { event: "workflow:human_gate", data: { runId, ...gate } };
    }
    case "notified": {
      const { kind: _kind, ...notified } = entry;
      return { event: "workflow:gate_notification", data: { runId, ...notified } };
    }
    case "callback": {
      const { kind: _kind, ...waits } = entry;
      return { event: "workflow:callback", data: { runId, ...waits } };
    }
    case "end": {
      const { inputs, outputs, durationMs = 0, error } = entry;
      if (entry.status === "completed")
        return { event: "workflow:node_complete", data: { runId, nodeId, inputs, outputs, durationMs } };
      return (
        error && { event: "workflow:node_error", data: { runId, nodeId, error: { code: error.code, message: error.message } } }
      );
    }
  }
}

/**
 * The last event that a reader of a run has received. A number counts the entries of the ledger up to this event: 0 is `workflow:started`.
 * `error` and `complete` are the events of the run's end.
 */
type EventCursor = number | "error" | "complete";

/** The id of an event. It is the same after a restart, and in every process of a cluster, because entries keep their positions in the log. */
function runEventId(runId: string, cursor: EventCursor): string {
  return `${runId}:${cursor}`;
}

/** The cursor that an id names. Undefined for an invalid id, and for an id of another run. */
function readEventCursor(runId: string, id: string | undefined): EventCursor | undefined {
  const prefix = `${runId}:`;
  if (!id?.startsWith(prefix)) return undefined;
  const cursor = id.slice(prefix.length);
  if (cursor === "error" || cursor === "complete") return cursor;
  return /^(?:0|[1-9]\d{0,14})$/.test(cursor) ? Number(cursor) : undefined;
}
