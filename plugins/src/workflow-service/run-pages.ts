import { JsonPieces } from "@portico/core";
import type { ListedFile } from "./files/run-files.ts";
import { isResumable } from "./runs/is-resumable.ts";
import type { LedgerEntry, NodeEnded, NodeStarted } from "./runs/ledger-entry.ts";
import type { RunRecord } from "./runs/run-record.ts";

const PIECE_CHARACTERS = 64 * 1024;

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
    ...{ completedAt, totalDurationMs, error, usage },
    ...ownershipOf(run),
  };
}

/** The stored parts of a run. */
export interface RunParts {
  /** The run that resumes it, if there is one. */
  readonly newer: RunRecord | undefined;
  readonly entries: AsyncIterable<LedgerEntry>;
  finalOutputs(): Promise<unknown>;
  /** In pages. Undefined without storage for files. */
  readonly files: AsyncIterable<readonly ListedFile[]> | undefined;
}

/**
 * A run with the results of all its nodes (specification 2.4; workflow.md, "What is recorded"). It is streamed, because the results may be many
 * and large. Nodes that have begun but not ended come last, as `running`, or as `waiting` at a gate.
 */
export function runDetail(run: RunRecord, { newer, entries, finalOutputs, files }: RunParts): JsonPieces {
  return new JsonPieces(
    (async function* () {
      const { workflowId, runId, status, startedAt, completedAt, totalDurationMs, error, usage, gates } = run;
      const head = {
        ...{ workflowId, runId, status, startedAt, taskBoardBound: isBound(run), completedAt, totalDurationMs, error, usage },
        ...(isResumable(run, newer) && { resumable: true }),
        ...{ resumes: run.resumes?.runId, resumedBy: run.resumedBy?.runId },
        ...(gates?.[0] && { humanGate: gates[0] }),
        ...ownershipOf(run),
      };
      let piece = `${JSON.stringify(head).slice(0, -1)},"nodeResults":{`;
      let separator = "";
      const open = new Map<string, NodeStarted>();
      const waiting = new Set(gates?.map(({ nodeId }) => nodeId));
      let parameters: unknown;
      for await (const entry of entries) {
        if (entry.kind === "parameters") parameters = entry.parameters;
        if (entry.kind === "start") open.set(entry.nodeId, entry);
        if (entry.kind !== "end") continue;
        open.delete(entry.nodeId);
        piece += separator + resultText(entry.nodeId, endedResult(entry));
        separator = ",";
        if (piece.length < PIECE_CHARACTERS) continue;
        yield piece;
        piece = "";
      }
      for (const [nodeId, { type, name, at }] of open) {
        const result = { type, name, status: waiting.has(nodeId) ? "waiting" : "running", attempts: 1, startedAt: at };
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

/** Whether a run belongs to a board or a task. */
export function isBound({ boardId, taskId }: RunRecord): boolean {
  return boardId !== undefined || taskId !== undefined;
}

function ownershipOf({ bindingId, boardId, taskId, userId, parent, schedule }: RunRecord) {
  return { workflowBindingId: bindingId, boardId, taskId, userId, parentRunId: parent?.runId, schedule };
}
