import { type ports, readPages, writeAgain } from "@portico/core";
import type { InferOutput } from "valibot";
import type { runMetadata } from "../contract.ts";
import { createRunList, type RunFilters } from "./run-list.ts";
import { advanceRun, type RunEvent } from "./run-state.ts";

/** A run as it is stored and shown (specification 2.11). */
export type Run = InferOutput<typeof runMetadata>;

export type Runs = ReturnType<typeof createRuns>;

/** The runs of an instance. */
export function createRuns(records: ports.Records) {
  const runs = records.collection<Run>({ name: "runs" });
  const list = createRunList(records);

  return {
    find: (runId: string): Promise<ports.Stored<Run> | undefined> => runs.get(runId),
    /** The writes that begin a run. */
    begin: (run: Run): readonly ports.Write[] => [
      runs.write.put(run.run_id, run, "absent"),
      list.write.put(run.run_id, {
        user_id: run.user_id,
        agent_id: run.agent_id,
        started_at: run.started_at,
        ...(run.delegation && {
          delegated_by: run.delegation.fromAgentId,
          ...(run.delegation.parentRunId !== undefined && { parent_run_id: run.delegation.parentRunId }),
        }),
      }),
    ],
    /** The write that replaces what was read. */
    replace: (read: ports.Stored<Run>, run: Run): ports.Write => runs.write.put(read.id, run, read.version),
    /** The writes that end a run and remove it from all lists. */
    clear: (read: ports.Stored<Run>, run: Run): readonly ports.Write[] => [
      runs.write.put(read.id, run, read.version),
      list.write.remove(read.id),
    ],
    /** The writes that remove a run in place of what was read. */
    remove: (read: ports.Stored<Run>): readonly ports.Write[] => [
      runs.write.remove(read.id, read.version),
      list.write.remove(read.id),
    ],
    /** Ids of listed runs, the oldest first, in pages. */
    oldest: list.oldest,
    /** All runs whose ids are before this one, cleared ones included, in pages. Ids begin with the time of the run, except those of keys. */
    async *before(end: string): AsyncGenerator<readonly Run[], void> {
      for await (const items of readPages(runs, {})) {
        const found = items.filter(({ id }) => id < end);
        yield found.map(({ value }) => value);
        if (found.length < items.length) return;
      }
    },
    writeAll: (writes: readonly ports.Write[]): Promise<void> => records.batch(writes),
    /** Change the user's data of a run, such as its title. Safe with concurrent writes of its turns. Undefined for an unknown run. */
    change(runId: string, change: (run: Run) => Run): Promise<Run | undefined> {
      return writeAgain(async () => {
        const read = await runs.get(runId);
        return read && (await runs.put(runId, change(read.value), read.version)).value;
      });
    },
    /** The newest runs that have all these values, in pages. */
    async *newest(filters: RunFilters, limit: number): AsyncIterable<readonly Run[]> {
      for await (const ids of list.newest(filters, limit)) {
        const found = await Promise.all(ids.map((id) => runs.get(id)));
        yield found.flatMap((run) => (run ? [run.value] : []));
      }
    },
  };
}

/** A run after what happened to it at this time (ISO 8601). */
export function withEvent(run: Run, event: RunEvent, at: string, facts: Partial<Run> = {}): Run {
  const status = advanceRun(run.status, event);
  const { completed_at: _completed, failure_reason: _failure, interruption_reason: _reason, interrupted_at: _at, ...rest } = run;
  return { ...(event === "turn-began" ? rest : run), status, updatedAt: at, ...facts };
}
