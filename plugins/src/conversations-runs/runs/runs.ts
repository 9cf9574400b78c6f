import { type FindPlace, findPage, type FoundPage, type ports, readPages, writeAgain } from "@portico/core";
import { createRunList, type RunFilters } from "./run-list.ts";
import type { Run } from "./run.ts";
import { isSought, type RunSearch, tagsOfSearch } from "./run-search.ts";
import { advanceRun, type RunEvent } from "./run-state.ts";
import { openRunTags, taggedChange, taggedRun } from "./run-tags.ts";

export type { Run } from "./run.ts";

export type Runs = ReturnType<typeof createRuns>;

/** The runs of an instance. */
export function createRuns(records: ports.Records) {
  const runs = records.collection<Run>({ name: "runs" });
  const list = createRunList(records);
  const tags = openRunTags(records);
  /** The writes that follow a change of a run's tags. */
  const tagWrites = (before: Run | undefined, after: Run | undefined) =>
    before && after
      ? tags.changes(...taggedChange(before, after))
      : tags.changes(before && taggedRun(before), after && taggedRun(after));

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
      ...tagWrites(undefined, run),
    ],
    /** The writes that replace the record that was read. */
    replace: (read: ports.Stored<Run>, run: Run): readonly ports.Write[] => [
      runs.write.put(read.id, run, read.version),
      ...tagWrites(read.value, run),
    ],
    /** The writes that end a run and remove it from all lists. */
    clear: (read: ports.Stored<Run>, run: Run): readonly ports.Write[] => [
      runs.write.put(read.id, run, read.version),
      list.write.remove(read.id),
      ...tagWrites(read.value, undefined),
    ],
    /** The writes that remove a run instead of the record that was read. */
    remove: (read: ports.Stored<Run>): readonly ports.Write[] => [
      runs.write.remove(read.id, read.version),
      list.write.remove(read.id),
      ...tagWrites(read.value, undefined),
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
        if (!read) return undefined;
        const changed = change(read.value);
        await records.batch([runs.write.put(runId, changed, read.version), ...tagWrites(read.value, changed)]);
        return changed;
      });
    },
    /** The newest runs that match all of a search, behind or before a place. The work is bounded: a page may end early (`findPage`). */
    async search(
      search: RunSearch,
      limit: number,
      place: { readonly after?: FindPlace | undefined; readonly before?: FindPlace | undefined } = {},
    ): Promise<FoundPage<Run>> {
      const { userId, agentId, delegatedBy, parentRunId, from, before } = search;
      const listed = {
        ...(agentId !== undefined && { agent_id: agentId }),
        ...(delegatedBy !== undefined && { delegated_by: delegatedBy }),
        ...(parentRunId !== undefined && { parent_run_id: parentRunId }),
      };
      const tagged = tagsOfSearch(search).map((tag) => tags.list(tag, userId));
      return findPage({
        // The lists of tags are lists of the user. Only what else is asked needs a list of its own.
        sources: [
          ...tagged,
          ...(tagged.length === 0 || Object.keys(listed).length > 0
            ? [list.source({ ...listed, ...(userId !== undefined && { user_id: userId }) })]
            : []),
        ],
        load: async (runId) => (await runs.get(runId))?.value,
        matches: (run) => isSought(run, search),
        ...place,
        notBefore: from,
        until: before,
        limit,
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

/** A run after an event at this time (ISO 8601). */
export function withEvent(run: Run, event: RunEvent, at: string, facts: Partial<Run> = {}): Run {
  const status = advanceRun(run.status, event);
  const {
    completed_at: _completed,
    failure_reason: _reason,
    failure: _failure,
    interruption_reason: _why,
    interrupted_at: _at,
    retry_at: _retry,
    ...rest
  } = run;
  const { approvals: _approvals, ...kept } = event === "turn-began" ? rest : run;
  return { ...kept, status, updatedAt: at, ...facts };
}

/** Whether another attempt of the run's background turn is planned. */
export const isPlanned = ({ retry_at }: Run): boolean => retry_at !== undefined;
