import { type ports, writeAgain } from "@portico/core";
import type { Gate, NodeError } from "./ledger-entry.ts";
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
  readonly completedNodeCount: number;
  readonly error?: RunError | undefined;
  /** Set until the run has ended: what the service looks for when it starts. */
  readonly active?: true | undefined;
  /** Gates that wait for a person, the one that has waited longest first. */
  readonly gates?: readonly Gate[] | undefined;
  /** For how long its time stood still because of them, and since when it does: milliseconds, and milliseconds since 1970. */
  readonly standstill?: { readonly ms: number; readonly since?: number | undefined } | undefined;
  /** The process that accepted it: nobody else can show its events live. */
  readonly instance: string;
  /** On whose behalf it works, where somebody is known. */
  readonly userId?: string | undefined;
  /** The binding that it was started under (specification 4.2, task scope). */
  readonly bindingId?: string | undefined;
  readonly boardId?: string | undefined;
  readonly taskId?: string | undefined;
  /** Of a run that a `workflow` node started. */
  readonly parent?: { readonly runId: string; readonly nodeId: string; readonly depth: number } | undefined;
}

/** Why a run failed, was cancelled or is interrupted. */
export interface RunError extends NodeError {
  readonly nodeId?: string | undefined;
}

/** What the runs of a binding are found by. */
interface BoundRun {
  readonly bindingId: string;
  readonly startedAt: string;
}

const PAGE = 200;
const NEWEST = { by: "startedAt", direction: "descending" } as const;

export type RunRecords = ReturnType<typeof createRunRecords>;

/** All runs of the instance. Functions throw RecordsUnavailable. */
export function createRunRecords(records: ports.Records) {
  const runs = records.collection<RunRecord>({
    name: "workflow-runs",
    indexes: {
      by_workflow: ["workflowId", "startedAt"],
      by_activity: ["active"],
    },
  });

  // Apart, since most runs belong to nobody's task, and every index costs each of them.
  const bound = records.collection<BoundRun>({
    name: "workflow-bound-runs",
    indexes: { by_binding: ["bindingId", "startedAt"] },
  });

  async function* pages(query: ports.Query): AsyncGenerator<readonly RunRecord[], void> {
    let after: string | undefined;
    do {
      const page: ports.Page<RunRecord> = await runs.query({ ...query, limit: PAGE, ...(after !== undefined && { after }) });
      yield page.items.map(({ value }) => value);
      after = page.next;
    } while (after !== undefined);
  }

  return {
    write: runs.write,
    find: (runId: string): Promise<ports.Stored<RunRecord> | undefined> => runs.get(runId),
    /** A run of this workflow; undefined for another's, too. */
    async findOf(workflowId: string, runId: string): Promise<RunRecord | undefined> {
      const found = await runs.get(runId);
      return found?.value.workflowId === workflowId ? found.value : undefined;
    },
    /** The writes that begin a run. */
    begin: (run: RunRecord): readonly ports.Write[] => [
      runs.write.put(run.runId, run, "absent"),
      ...(run.bindingId === undefined
        ? []
        : [bound.write.put(run.runId, { bindingId: run.bindingId, startedAt: run.startedAt }, "absent")]),
    ],
    /** Newest first, in pages. */
    newest: (workflowId: string) => pages({ where: { workflowId }, order: NEWEST }),
    /** Those of a binding, likewise. */
    async *newestBound(bindingId: string): AsyncGenerator<readonly RunRecord[], void> {
      let after: string | undefined;
      do {
        const page: ports.Page<BoundRun> = await bound.query({
          ...{ where: { bindingId }, order: NEWEST, limit: PAGE },
          ...(after !== undefined && { after }),
        });
        const found = await Promise.all(page.items.map(({ id }) => runs.get(id)));
        yield found.flatMap((run) => (run ? [run.value] : []));
        after = page.next;
      } while (after !== undefined);
    },
    async last(workflowId: string): Promise<RunRecord | undefined> {
      const { items } = await runs.query({ where: { workflowId }, order: NEWEST, limit: 1 });
      return items[0]?.value;
    },
    /** What has not ended, in pages. */
    active: () => pages({ where: { active: true } }),
    /** Change a run that has not ended, whoever else writes at the same time. Undefined where it has, or never was. */
    change(runId: string, change: (run: RunRecord) => RunRecord): Promise<RunRecord | undefined> {
      return writeAgain(async () => {
        const read = await runs.get(runId);
        if (!read || isTerminal(read.value.status)) return undefined;
        return (await runs.put(runId, change(read.value), read.version)).value;
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
}

/** A run that has ended. */
export function endedRun(run: RunRecord, { status, at, error, completedNodeCount }: RunEnd): RunRecord {
  const { active: _active, gates: _gates, standstill: _standstill, ...rest } = run;
  return {
    ...rest,
    status,
    completedNodeCount,
    completedAt: new Date(at).toISOString(),
    totalDurationMs: Math.max(0, at - Date.parse(run.startedAt)),
    ...(error && { error }),
  };
}
