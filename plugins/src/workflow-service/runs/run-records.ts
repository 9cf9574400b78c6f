import { type FindPlace, findPage, type FindSource, type FoundPage, type ports, readPages, writeAgain } from "@portico/core";
import { firstRunId, RUN_LIST, type RunKey } from "./run-id.ts";
import type { RunRecord } from "./run-record.ts";
import { isSought, type RunSearch, tagsOfSearch, openRunTags, scheduleTag, taggedRun } from "./run-search.ts";
import { isTerminal } from "../contracts/run-state.ts";
import { createVersionUse } from "./version-use.ts";

const PAGE = 200;
/** Maximum number of runs that one commit removes, which limits the wait of other writers. */
const REMOVED_AT_ONCE = 50;
const NEWEST = { by: "startedAt", direction: "descending" } as const;

type KeyValues = Readonly<Partial<Record<"workflowId" | "definition", string>>>;

export type RunRecords = ReturnType<typeof createRunRecords>;

/**
 * All runs of the instance. The keys by which they are found are stored separately when they begin, so that later changes of a run touch no
 * index. Functions throw RecordsUnavailable.
 */
export function createRunRecords(records: ports.Records) {
  const runs = records.collection<RunRecord>({ name: "workflow-runs" });
  const open = records.collection<object>({ name: "workflow-open-runs" });
  const list = records.collection<RunKey>({ name: "workflow-run-list", indexes: RUN_LIST });
  // Most runs belong to no task.
  const bound = records.collection<Omit<RunKey, "definition">>({
    name: "workflow-bound-runs",
    indexes: { by_binding: ["bindingId", "startedAt"] },
  });

  /** Removed, though their ledgers may still be there. */
  const removed = records.collection<object>({ name: "workflow-removed-runs" });
  const tags = openRunTags(records);
  const use = createVersionUse(records, list);
  async function* pages(keys: ports.Collection<object>, query: ports.Query): AsyncGenerator<readonly RunRecord[], void> {
    for await (const items of readPages(keys, { ...query, limit: PAGE })) {
      const found = await Promise.all(items.map(({ id }) => runs.get(id)));
      yield found.flatMap((run) => (run ? [run.value] : []));
    }
  }

  /** The keys of all runs with one value. The subjects that lack the other values of the search are known without being loaded. */
  const keysWith = (where: KeyValues, wanted: KeyValues): FindSource => {
    const isOther = (key: RunKey): boolean => Object.entries(wanted).some(([name, value]) => key[name as keyof RunKey] !== value);
    return {
      async read(after, limit, direction) {
        const asked: ports.Query = {
          where,
          order: { by: "startedAt", direction },
          limit,
          ...(after && { after: { value: after.at, id: after.id } }),
        };
        if (Object.keys(wanted).every((name) => Object.hasOwn(where, name))) {
          const { places, isLast } = await list.places(asked);
          return { places: places.map(({ id, value }) => ({ at: String(value), id })), isLast };
        }
        const { items, next } = await list.query(asked);
        const places = items.map(({ id, value }) => ({ at: value.startedAt, id, isOther: isOther(value) }));
        return { places, isLast: next === undefined };
      },
      async having(ids) {
        const found = await Promise.all(ids.map((id) => list.get(id)));
        return new Set(ids.filter((_, at) => found[at] && !isOther(found[at].value)));
      },
    };
  };

  /**
   * The list of the version, and, unless the lists of tags are the workflow's, that of the workflow. Which of them is shorter is not known before.
   */
  const keysOf = ({ workflowId, version }: RunSearch, isTagged: boolean): readonly FindSource[] => {
    const [workflow, definition] = [workflowId !== undefined && { workflowId }, version !== undefined && { definition: version }];
    const lists = [...(definition ? [definition] : []), ...(workflow && !isTagged ? [workflow] : [])];
    if (lists.length === 0 && !isTagged) return [keysWith({}, {})];
    return lists.map((where) => keysWith(where, { ...workflow, ...definition }));
  };

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
        list.write.put(runId, keyOf(run)),
        ...(bindingId === undefined ? [] : [bound.write.put(runId, { workflowId, bindingId, startedAt })]),
        ...tags.changes(undefined, taggedRun(run)),
      ];
    },
    /** The writes that end a run, instead of the record that was read. */
    end: (read: ports.Stored<RunRecord>, ended: RunRecord): readonly ports.Write[] => [
      runs.write.put(read.id, ended, read.version),
      open.write.remove(read.id),
      ...tags.changes(taggedRun(read.value), taggedRun(ended)),
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
    /**
     * The newest runs that match all of a search, and that the caller may read, behind or before a place. The work is bounded: a page may end
     * early (`findPage`).
     */
    search(
      search: RunSearch,
      {
        isReadable,
        ...page
      }: {
        readonly after?: FindPlace | undefined;
        readonly before?: FindPlace | undefined;
        readonly limit: number;
        isReadable(run: RunRecord): boolean;
      },
    ): Promise<FoundPage<RunRecord>> {
      const { workflowId, from, before } = search;
      // The lists of tags are lists of the workflow.
      const tagged = tagsOfSearch(search).map((tag) => tags.list(tag, workflowId));
      return findPage({
        sources: [...tagged, ...keysOf(search, tagged.length > 0)],
        load: async (runId) => (await runs.get(runId))?.value,
        matches: (run) => isSought(run, search) && isReadable(run),
        ...page,
        notBefore: from,
        until: before,
      });
    },
    /** How many runs use each version of a definition. */
    use,
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
    /** The ids of open runs that a schedule started at planned times, and of open runs that resume its runs, the oldest first. */
    async *openOfSchedule(workflowId: string, name: string): AsyncGenerator<string, void> {
      const tagged = tags.list(scheduleTag(name), workflowId);
      for (let after: FindPlace | undefined; ;) {
        const { places, isLast } = await tagged.read(after, PAGE, "ascending");
        for (const { id } of places) {
          const run = await runs.get(id);
          // The run may have ended since its tags were read.
          if (run && !isTerminal(run.value.status)) yield id;
        }
        after = places.at(-1);
        if (isLast || !after) return;
      }
    },
    /** Whether a run has this definition. */
    async isUsed(definition: string): Promise<boolean> {
      const { items } = await list.query({ where: { definition }, order: NEWEST, limit: 1 });
      return items.length > 0;
    },
    /**
     * Remove ended runs in one commit, so that they are no longer found. Records that their ledgers still exist. Runs that another process removes
     * at the same time count as removed once.
     */
    remove: (ended: readonly RunRecord[]): Promise<void> =>
      writeAgain(async () => {
        const read = await Promise.all(ended.map(({ runId }) => runs.get(runId)));
        const found = read.filter((each) => each !== undefined);
        if (found.length === 0) return;
        await records.batch([
          ...found.flatMap(({ id, version, value }) => [
            runs.write.remove(id, version),
            list.write.remove(id),
            ...(value.bindingId === undefined ? [] : [bound.write.remove(id)]),
            removed.write.put(id, {}),
            ...tags.changes(taggedRun(value), undefined),
          ]),
          ...(await use.without(found.map(({ value }) => value))),
        ]);
      }),
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
        await records.batch([
          runs.write.put(runId, changed, read.version),
          open.write.remove(runId),
          ...tags.changes(taggedRun(read.value), taggedRun(changed)),
        ]);
        return changed;
      });
    },
  };
}

function keyOf({ workflowId, startedAt, definition, bindingId }: RunRecord): RunKey {
  return { workflowId, startedAt, definition, ...(bindingId !== undefined && { bindingId }) };
}
