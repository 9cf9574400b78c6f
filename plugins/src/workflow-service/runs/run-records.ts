import { createRunIndex, type ports, readPages, writeAgain } from "@portico/core";
import { firstRunId, type RunKey } from "./run-id.ts";
import type { RunRecord } from "./run-record.ts";
import { runIndex, scheduleTag } from "./run-search.ts";
import { isTerminal } from "../contracts/run-state.ts";
import { failedRunWrites } from "./failed-run.ts";
import { createVersionUse } from "./version-use.ts";

const PAGE = 200;
/** Maximum number of runs that one commit removes, which limits the wait of other writers. */
const REMOVED_AT_ONCE = 50;
const NEWEST = { by: "startedAt", direction: "descending" } as const;

export type RunRecords = ReturnType<typeof createRunRecords>;

/** All runs of the instance. Functions throw RecordsUnavailable. `notifications`: tells the operators of runs that failed. */
export function createRunRecords(records: ports.Records, notifications?: ports.Notifications) {
  const index = createRunIndex(records, runIndex);
  const open = records.collection<object>({ name: "workflow-open-runs" });
  // Most runs belong to no task.
  const bound = records.collection<Omit<RunKey, "definition">>({
    name: "workflow-bound-runs",
    indexes: { by_binding: ["bindingId", "startedAt"] },
  });
  const use = createVersionUse(records, index.keys);
  async function* pages(keys: ports.Collection<object>, query: ports.Query): AsyncGenerator<readonly RunRecord[], void> {
    for await (const items of readPages(keys, { ...query, limit: PAGE })) yield index.loaded(items.map(({ id }) => id));
  }
  const closes = (run: RunRecord): readonly ports.Write[] =>
    isTerminal(run.status) ? [open.write.remove(run.runId), ...(notifications ? failedRunWrites(run, notifications) : [])] : [];

  return {
    find: index.find,
    /** A run of this workflow; undefined for another's, too. */
    async findOf(workflowId: string, runId: string): Promise<RunRecord | undefined> {
      const found = await index.find(runId);
      return found?.value.workflowId === workflowId ? found.value : undefined;
    },
    /** The writes that begin a run. */
    begin(run: RunRecord): readonly ports.Write[] {
      const { runId, workflowId, bindingId, startedAt } = run;
      return [
        ...index.begin(run),
        open.write.put(runId, {}),
        ...(bindingId === undefined ? [] : [bound.write.put(runId, { workflowId, bindingId, startedAt })]),
      ];
    },
    /** The writes that end a run, instead of the record that was read. */
    end: (read: ports.Stored<RunRecord>, ended: RunRecord): readonly ports.Write[] => [
      ...index.replace(read, ended),
      ...closes(ended),
    ],
    /** The writes that note which run resumes an ended run. A RecordConflict if another resume was quicker. */
    resume: (read: ports.Stored<RunRecord>, resumedBy: NonNullable<RunRecord["resumedBy"]>): readonly ports.Write[] =>
      index.replace(read, { ...read.value, resumedBy }),
    /** Newest first, in pages. */
    newest: (workflowId: string) => index.newest({ workflowId }),
    /** Those of a binding, likewise. */
    newestBound: (bindingId: string) => pages(bound, { where: { bindingId }, order: NEWEST }),
    async last(workflowId: string): Promise<RunRecord | undefined> {
      for await (const [run] of index.newest({ workflowId }, 1)) return run;
      return undefined;
    },
    search: index.search,
    /** How many runs use each version of a definition. */
    use,
    /** The runs that have not ended, in pages. */
    active: () => pages(open, {}),
    /** Runs that began before `at`, and runs that those started, the oldest first, in pages. */
    begunBefore: (at: number) => index.before(firstRunId(at), REMOVED_AT_ONCE),
    /** The ids of open runs that a schedule started at planned times, and of open runs that resume its runs, the oldest first. */
    async *openOfSchedule(workflowId: string, name: string): AsyncGenerator<string, void> {
      for await (const ids of index.withTag(scheduleTag(name), workflowId)) {
        for (const id of ids) {
          const run = await index.find(id);
          // The run may have ended since its tags were read.
          if (run && !isTerminal(run.value.status)) yield id;
        }
      }
    },
    /** Whether a run has this definition. */
    async isUsed(definition: string): Promise<boolean> {
      const { items } = await index.keys.query({ where: { definition }, order: NEWEST, limit: 1 });
      return items.length > 0;
    },
    /**
     * Remove ended runs in one commit, so that they are no longer found. Records that their ledgers still exist. Runs that another process removes
     * at the same time count as removed once.
     */
    remove: (ended: readonly RunRecord[]): Promise<void> =>
      writeAgain(async () => {
        const read = await Promise.all(ended.map(({ runId }) => index.find(runId)));
        const found = read.filter((each) => each !== undefined);
        if (found.length === 0) return;
        await records.batch([
          ...found.flatMap((each) => [
            ...index.remove(each),
            ...(each.value.bindingId === undefined ? [] : [bound.write.remove(each.id)]),
          ]),
          ...(await use.without(found.map(({ value }) => value))),
        ]);
      }),
    finishRemovals: index.finishRemovals,
    /**
     * Change a run that has not ended. Safe with concurrent writers. Returns undefined if the run has ended or does not exist. `more`: written in
     * the same commit.
     */
    change: (
      runId: string,
      change: (run: RunRecord) => RunRecord,
      more?: () => Promise<readonly ports.Write[]>,
    ): Promise<RunRecord | undefined> =>
      index.change(
        runId,
        (run) => (isTerminal(run.status) ? undefined : change(run)),
        async (changed) => [...closes(changed), ...((await more?.()) ?? [])],
      ),
  };
}
