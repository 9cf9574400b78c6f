import { type ports, readPages, writeAgain } from "@portico/core";
import type { SensitivePaths } from "../definition/sensitive-paths.ts";
import type { Gate, NodeError } from "./ledger-entry.ts";
import { firstRunId } from "./run-id.ts";
import { isTerminal, type RunStatus } from "./run-state.ts";

/** A run as it is stored; its nodes stand in its ledger. */
export interface RunRecord {
  readonly runId: string;
  readonly workflowId: string;
  /** Of the definition that it started with: its hash, and what is shown of it. */
  readonly definition: string;
  readonly name: string;
  readonly nodeCount: number;
  readonly status: RunStatus;
  /** ISO 8601: when it was accepted. */
  readonly startedAt: string;
  readonly completedAt?: string | undefined;
  readonly totalDurationMs?: number | undefined;
  /** Up to when its execution last stopped or opened a gate: of a run that executes, its process knows better. */
  readonly completedNodeCount: number;
  readonly error?: RunError | undefined;
  /** Gates that wait for a person, the one that has waited longest first. */
  readonly gates?: readonly Gate[] | undefined;
  /** For how long its time stood still because of them, and since when it does: milliseconds, and milliseconds since 1970. */
  readonly standstill?: { readonly ms: number; readonly since?: number | undefined } | undefined;
  /** The process that accepted it. Only this process can send its live events. */
  readonly instance: string;
  /** The user for whom it works, if a user is known. */
  readonly userId?: string | undefined;
  /** The binding that it was started under (specification 4.2, task scope). */
  readonly bindingId?: string | undefined;
  readonly boardId?: string | undefined;
  readonly taskId?: string | undefined;
  /** Of a run that a `workflow` node started. */
  readonly parent?:
    | {
        readonly runId: string;
        readonly nodeId: string;
        /** The parts of this run's outputs that the node marks as secret. */
        readonly sensitive?: SensitivePaths | undefined;
      }
    | undefined;
  /** Of a run that a schedule of its definition started. `plannedAt`: ISO 8601; absent if it was started by hand. */
  readonly schedule?: { readonly name: string; readonly plannedAt?: string | undefined } | undefined;
  /** Of a run that resumes another. */
  readonly resumes?: ResumedRun | undefined;
  /** The run that resumes this one. A run is resumed once: after that, the newer run is resumed. */
  readonly resumedBy?: { readonly runId: string; readonly idempotencyKey: string } | undefined;
  /** Set when it has ended and its history has all results of its finished nodes. */
  readonly isComplete?: true | undefined;
  /** Its depth in a chain of runs that start each other, also through agents; absent at the top. */
  readonly depth?: number | undefined;
}

/** The run that another run resumes, and the nodes that are repeated although they had finished. */
export interface ResumedRun {
  readonly runId: string;
  /** The first run of the chain. Repeated nodes send its idempotency keys. */
  readonly originalRunId: string;
  /** Nodes of the definition. */
  readonly repeat?: readonly string[] | undefined;
}

/** Why a run failed, was cancelled or is interrupted. */
export interface RunError extends NodeError {
  readonly nodeId?: string | undefined;
}

/** The keys by which runs are found. */
interface RunKey {
  readonly workflowId: string;
  readonly bindingId?: string | undefined;
  readonly startedAt: string;
}

const PAGE = 200;
/** Maximum number of runs that one commit removes, which limits the wait of other writers. */
const REMOVED_AT_ONCE = 50;
const NEWEST = { by: "startedAt", direction: "descending" } as const;
const OLDEST = { by: "startedAt", direction: "ascending" } as const;

export type RunRecords = ReturnType<typeof createRunRecords>;

/**
 * All runs of the instance. The keys by which they are found are stored separately when they begin, so that later changes of a run touch no
 * index. Functions throw RecordsUnavailable.
 */
export function createRunRecords(records: ports.Records) {
  const runs = records.collection<RunRecord>({ name: "workflow-runs" });
  const open = records.collection<object>({ name: "workflow-open-runs" });
  const list = records.collection<RunKey>({ name: "workflow-run-list", indexes: { by_workflow: ["workflowId", "startedAt"] } });
  // Most runs belong to no task.
  const bound = records.collection<RunKey>({ name: "workflow-bound-runs", indexes: { by_binding: ["bindingId", "startedAt"] } });

  /** Removed, though their ledgers may still be there. */
  const removed = records.collection<object>({ name: "workflow-removed-runs" });

  async function* pages(keys: ports.Collection<object>, query: ports.Query): AsyncGenerator<readonly RunRecord[], void> {
    for await (const items of readPages(keys, { ...query, limit: PAGE })) {
      const found = await Promise.all(items.map(({ id }) => runs.get(id)));
      yield found.flatMap((run) => (run ? [run.value] : []));
    }
  }

  return {
    find: (runId: string): Promise<ports.Stored<RunRecord> | undefined> => runs.get(runId),
    /** A run of this workflow; undefined for another's, too. */
    async findOf(workflowId: string, runId: string): Promise<RunRecord | undefined> {
      const found = await runs.get(runId);
      return found?.value.workflowId === workflowId ? found.value : undefined;
    },
    /** The writes that begin a run. */
    begin(run: RunRecord): readonly ports.Write[] {
      const { runId, workflowId, bindingId, startedAt } = run;
      return [
        runs.write.put(runId, run, "absent"),
        open.write.put(runId, {}),
        list.write.put(runId, { workflowId, startedAt }),
        ...(bindingId === undefined ? [] : [bound.write.put(runId, { workflowId, bindingId, startedAt })]),
      ];
    },
    /** The writes that end a run, instead of the record that was read. */
    end: (read: ports.Stored<RunRecord>, ended: RunRecord): readonly ports.Write[] => [
      runs.write.put(read.id, ended, read.version),
      open.write.remove(read.id),
    ],
    /** The write that notes which run resumes an ended run. A RecordConflict if another resume was quicker. */
    resume: (read: ports.Stored<RunRecord>, resumedBy: NonNullable<RunRecord["resumedBy"]>): ports.Write =>
      runs.write.put(read.id, { ...read.value, resumedBy }, read.version),
    /** Newest first, in pages. */
    newest: (workflowId: string) => pages(list, { where: { workflowId }, order: NEWEST }),
    /** Those of a binding, likewise. */
    newestBound: (bindingId: string) => pages(bound, { where: { bindingId }, order: NEWEST }),
    async last(workflowId: string): Promise<RunRecord | undefined> {
      const [newest] = (await list.query({ where: { workflowId }, order: NEWEST, limit: 1 })).items;
      return newest && (await runs.get(newest.id))?.value;
    },
    /** The runs that have not ended, in pages. */
    active: () => pages(open, {}),
    /** Runs that began before `at`, and runs that those started, the oldest first, in pages. */
    async *begunBefore(at: number): AsyncGenerator<readonly RunRecord[], void> {
      const end = firstRunId(at);
      for await (const items of readPages(runs, { limit: REMOVED_AT_ONCE })) {
        const found = items.filter(({ id }) => id < end);
        yield found.map(({ value }) => value);
        if (found.length < items.length) return;
      }
    },
    /** When the oldest run that there is of a workflow began: milliseconds since 1970. */
    async oldest(workflowId: string): Promise<number | undefined> {
      const [first] = (await list.query({ where: { workflowId }, order: OLDEST, limit: 1 })).items;
      return first && Date.parse(first.value.startedAt);
    },
    /** Remove ended runs in one commit, so that they are no longer found. Records that their ledgers still exist. */
    remove: (ended: readonly RunRecord[]): Promise<void> =>
      records.batch(
        ended.flatMap(({ runId, bindingId }) => [
          runs.write.remove(runId),
          list.write.remove(runId),
          ...(bindingId === undefined ? [] : [bound.write.remove(runId)]),
          removed.write.put(runId, {}),
        ]),
      ),
    /** The ids of removed runs whose ledgers may be there, in pages. */
    async *removed(): AsyncGenerator<readonly string[], void> {
      for await (const items of readPages(removed, { limit: REMOVED_AT_ONCE })) yield items.map(({ id }) => id);
    },
    /** Of removed runs whose ledgers are not there any more. */
    forget: (runIds: readonly string[]): Promise<void> => records.batch(runIds.map((runId) => removed.write.remove(runId))),
    /** Change a run that has not ended. Safe with concurrent writers. Returns undefined if the run has ended or does not exist. */
    change(runId: string, change: (run: RunRecord) => RunRecord): Promise<RunRecord | undefined> {
      return writeAgain(async () => {
        const read = await runs.get(runId);
        if (!read || isTerminal(read.value.status)) return undefined;
        const changed = change(read.value);
        if (!isTerminal(changed.status)) return (await runs.put(runId, changed, read.version)).value;
        await records.batch([runs.write.put(runId, changed, read.version), open.write.remove(runId)]);
        return changed;
      });
    },
  };
}

export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly error?: RunError | undefined;
  readonly completedNodeCount: number;
  readonly isComplete?: boolean | undefined;
}

/** A run that has ended. */
export function endedRun(run: RunRecord, { status, at, error, completedNodeCount, isComplete }: RunEnd): RunRecord {
  const { gates: _gates, standstill: _standstill, ...rest } = run;
  return {
    ...rest,
    status,
    completedNodeCount,
    completedAt: new Date(at).toISOString(),
    totalDurationMs: Math.max(0, at - Date.parse(run.startedAt)),
    ...(error && { error }),
    ...(isComplete && { isComplete }),
  };
}
