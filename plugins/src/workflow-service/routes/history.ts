import { jsonList, JsonPieces } from "@portico/core";
import { preferredWait, preferredWaitMs, waitApplied, type WaitingCall } from "@portico/core/kit";
import { readFinalOutputs } from "./events.ts";
import { type LocatedEntry, readEntries, readCompletedNodeCount } from "../runs/ledger.ts";
import type { CallbackWaits, LedgerEntry, NodeEnded, NodeStarted } from "../runs/ledger-entry.ts";
import { isReadable, readTaskScope } from "../access/task-scope.ts";
import {
  readableRun,
  readerOf,
  orStoreError,
  toStoreError,
  type WorkflowHandlers,
  type WorkflowServices,
} from "./workflow-services.ts";
import type { ListedFile } from "../files/run-files.ts";
import { isResumable } from "../runs/resumable-results.ts";
import { isQueued, type RunRecord } from "../runs/run-record.ts";
import { waitForEnd } from "../service/follow-run.ts";
import { isTerminal } from "../contracts/run-state.ts";

/** Lists the runs of a workflow, or of a task, the newest first. */
export function listRuns(services: WorkflowServices): WorkflowHandlers["runs"] {
  const { bindings, catalogue, runs } = services.runtime;
  const completedNodes = completedNodesIn(services);
  return async ({ params: { id }, query, signal, fail }) => {
    const canRead = await readerOf(services, signal);
    const scoped = readTaskScope(query, { workflowId: id, bindings, canRead });
    if (!catalogue.find(id) && !(await runs.last(id).catch(toStoreError))) throw fail.workflow_not_found();
    const pages = scoped ? runs.newestBound(scoped.bindingId) : runs.newest(id);
    return jsonList(
      "runs",
      (async function* () {
        for await (const page of orStoreError(pages)) {
          const shown = page.filter((run) => run.workflowId === id && isReadable(run, canRead));
          yield await Promise.all(shown.map(async (run) => runSummary(run, await completedNodes(run).catch(toStoreError))));
        }
      })(),
    );
  };
}

/** Shows one run with all its nodes. */
export function readRun(services: WorkflowServices): WorkflowHandlers["run"] {
  const { runtime, clock } = services;
  return async ({ params, query, ...call }) => {
    const { signal } = call;
    const before = await readableRun(services, params, query, signal);
    const waiting = (until: AbortSignal) => waitForEnd(runtime, before.runId, until).catch(toStoreError);
    const run = (await preferredWait(call, clock, waiting)) ?? before;
    if (isTerminal(run.status)) waitApplied(call);
    return detailOf(services, run, signal);
  };
}

/**
 * What a call that has started a run answers: its own answer, or the run with all its nodes if the caller wanted to wait, the run has ended in
 * time, and the caller may read it. A caller that waited in vain is told where the run is read. The run is accepted already, so no failure to
 * read it may hide that.
 */
export async function startedOrEnded<S extends { readonly runId: string; readonly workflowId: string }>(
  services: WorkflowServices,
  call: WaitingCall,
  started: S,
): Promise<S | (S & { readonly location: string }) | JsonPieces> {
  const { runtime, clock } = services;
  const { workflowId, runId } = started;
  if (preferredWaitMs(call.head) === 0) return started;
  try {
    const ended = await preferredWait(call, clock, (until) => waitForEnd(runtime, runId, until));
    if (ended && isTerminal(ended.status) && isReadable(ended, await readerOf(services, call.signal))) {
      const detail = await detailOf(services, ended, call.signal);
      waitApplied(call);
      return detail;
    }
  } catch {
    // Its `location` tells more.
  }
  return { ...started, location: `/api/workflow/${encodeURIComponent(workflowId)}/runs/${encodeURIComponent(runId)}` };
}

async function detailOf(services: WorkflowServices, run: RunRecord, signal: AbortSignal): Promise<JsonPieces> {
  const { log, runtime } = services;
  const { files, live, runs } = runtime;
  const { runId } = run;
  const found = live.find(runId);
  const executing = found && live.knowsMore(found) ? found : undefined;
  // Its execution may have begun just now.
  await executing?.ledger.recall().catch(toStoreError);
  const entries = executing ? entriesOf(executing.ledger.read({ signal })) : readEntries(log, runId, signal);
  const newer = run.resumedBy && (await runs.find(run.resumedBy.runId).catch(toStoreError));
  return runDetail(run, {
    newer: newer?.value,
    entries: orStoreError(entries),
    finalOutputs: () => readFinalOutputs(log, runId).catch(toStoreError),
    files: files && orStoreError(files.list(runId)),
  });
}

/**
 * A run in a list (specification 2.4). `completed`: the number of completed nodes, if the run executes in this process. It may be larger than
 * in the record. It may also be smaller, while the run repeats the steps of an earlier execution.
 */
export function runSummary(run: RunRecord, completed: number | undefined) {
  const { runId, status, startedAt, nodeCount, completedAt, totalDurationMs, error, usage } = run;
  const completedNodeCount = Math.max(run.completedNodeCount, completed ?? 0);
  return {
    ...{ runId, status, startedAt, nodeCount, completedNodeCount },
    taskBoardBound: isBound(run),
    ...(isQueued(run) && { queued: true as const }),
    ...{ completedAt, totalDurationMs, error, usage },
    ...ownershipOf(run),
  };
}

/** Whether a run belongs to a board or a task. */
export function isBound({ boardId, taskId }: RunRecord): boolean {
  return boardId !== undefined || taskId !== undefined;
}

/** How many nodes of a run have completed, if it executes: its record is older. Throws LogUnavailable. */
export function completedNodesIn({ log, runtime: { live, hints } }: WorkflowServices) {
  return async ({ runId, status }: RunRecord): Promise<number | undefined> => {
    const found = live.find(runId);
    if (found?.isExecuting || !hints || isTerminal(status)) return found?.completedNodeCount;
    return readCompletedNodeCount(log, runId);
  };
}

async function* entriesOf(located: AsyncIterable<LocatedEntry>): AsyncGenerator<LedgerEntry, void> {
  for await (const { entry } of located) yield entry;
}

const PIECE_CHARACTERS = 64 * 1024;

/** The stored parts of a run. */
interface RunParts {
  /** The run that resumes it, if there is one. */
  readonly newer: RunRecord | undefined;
  readonly entries: AsyncIterable<LedgerEntry>;
  finalOutputs(): Promise<unknown>;
  /** In pages. Undefined without storage for files. */
  readonly files: AsyncIterable<readonly ListedFile[]> | undefined;
}

/**
 * A run with the results of all its nodes (specification 2.4; workflow.md, "What is recorded"). It is streamed, because the results may be many
 * and large. Nodes that have begun but not ended come last, as `running`, or as `waiting` for an answer from outside.
 */
function runDetail(run: RunRecord, { newer, entries, finalOutputs, files }: RunParts): JsonPieces {
  return new JsonPieces(
    (async function* () {
      const { workflowId, runId, status, startedAt, completedAt, totalDurationMs, error, usage, gates } = run;
      const head = {
        ...{ workflowId, runId, status, startedAt, taskBoardBound: isBound(run), completedAt, totalDurationMs, error, usage },
        ...(isQueued(run) && { queued: true }),
        ...(isResumable(run, newer) && { resumable: true }),
        ...{ resumes: run.resumes?.runId, resumedBy: run.resumedBy?.runId },
        ...(gates?.[0] && { humanGate: gates[0] }),
        ...ownershipOf(run),
      };
      let piece = `${JSON.stringify(head).slice(0, -1)},"nodeResults":{`;
      let separator = "";
      const open = new Map<string, NodeStarted>();
      const waiting = new Set(gates?.map(({ nodeId }) => nodeId));
      const callbacks = new Map<string, CallbackWaits>();
      let parameters: unknown;
      for await (const entry of entries) {
        if (entry.kind === "parameters") parameters = entry.parameters;
        if (entry.kind === "start") open.set(entry.nodeId, entry);
        if (entry.kind === "callback") callbacks.set(entry.nodeId, entry);
        if (entry.kind !== "end") continue;
        callbacks.delete(entry.nodeId);
        open.delete(entry.nodeId);
        piece += separator + resultText(entry.nodeId, endedResult(entry));
        separator = ",";
        if (piece.length < PIECE_CHARACTERS) continue;
        yield piece;
        piece = "";
      }
      for (const [nodeId, { type, name, at }] of open) {
        const callback = callbacks.get(nodeId);
        const result = {
          ...{ type, name, status: callback || waiting.has(nodeId) ? "waiting" : "running" },
          ...{ attempts: callback?.attempt ?? 1, startedAt: at, waitsUntil: callback?.expiresAt },
        };
        piece += separator + resultText(nodeId, result);
        separator = ",";
      }
      const outputs = await finalOutputs();
      const listed: ListedFile[] = [];
      for await (const page of files ?? []) listed.push(...page);
      const last = JSON.stringify({
        ...{ parameters, finalOutputs: outputs },
        ...(listed.length > 0 && { files: listed }),
      }).slice(1, -1);
      yield `${piece}}${last === "" ? "" : ","}${last}}`;
    })(),
  );
}

function endedResult({ kind: _kind, nodeId: _nodeId, kept: _kept, ...result }: NodeEnded): object {
  return result;
}

function resultText(nodeId: string, result: object): string {
  return `${JSON.stringify(nodeId)}:${JSON.stringify(result)}`;
}

function ownershipOf({ bindingId, boardId, taskId, userId, parent, schedule }: RunRecord) {
  return { workflowBindingId: bindingId, boardId, taskId, userId, parentRunId: parent?.runId, schedule };
}
