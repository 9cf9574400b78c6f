import { setImmediate as nextTurn } from "node:timers/promises";
import { type ports, writeAgain } from "@portico/core";
import type { RunKey } from "./run-id.ts";
import type { RunRecord } from "./run-record.ts";

/** How many runs use a version of a definition. The runs of each binding are counted separately, because callers may not read all bindings. */
export interface VersionUse {
  /** The hash of the definition. */
  readonly definition: string;
  readonly bindingId?: string | undefined;
  readonly count: number;
  /** When the first and the last counted run began (ISO 8601). The first run may have been removed since. */
  readonly firstUsedAt: string;
  readonly lastUsedAt: string;
}

/** The counted runs of a workflow. */
interface StoredUse {
  /** The newest counted run. All runs up to it are counted. */
  readonly upTo?: { readonly at: string; readonly id: string } | undefined;
  readonly uses: readonly VersionUse[];
}

/** How often the runs that began since are counted. */
export const VERSIONS_COUNTED: ports.ChoreOptions = { everyMs: 10 * 60_000, firstMs: 60_000 };

/** Younger runs are not stored in the counts: the clock of another process may be behind. */
const SETTLED_MS = 5 * 60_000;
const PAGE = 200;
const NONE: StoredUse = { uses: [] };

/**
 * Counts the runs of each version. A stored count has all runs up to a time. Reading it reads only the keys of newer runs. Every removal of
 * runs writes the stored count in its commit, so that a count at the same time conflicts.
 */
export function createVersionUse(records: ports.Records, keys: Pick<ports.Collection<RunKey>, "query">) {
  const stored = records.collection<StoredUse>({ name: "workflow-version-use" });

  /** Keys of runs behind a place, the oldest first. */
  async function page(workflowId: string, upTo: StoredUse["upTo"]) {
    const { items, next } = await keys.query({
      where: { workflowId },
      order: { by: "startedAt", direction: "ascending" },
      limit: PAGE,
      ...(upTo && { after: { value: upTo.at, id: upTo.id } }),
    });
    const places = items.map(({ id, value }) => ({ at: value.startedAt, id }));
    return { places, found: items.map(({ value }) => value), isLast: next === undefined };
  }

  /** Counts one page of runs that began before `until` (ISO 8601). Returns whether more may follow. */
  const countPage = (workflowId: string, until: string): Promise<boolean> =>
    writeAgain(async () => {
      const read = await stored.get(workflowId);
      // Created first: a removal at the same time then conflicts.
      const { value, version } = read ?? (await stored.put(workflowId, NONE, "absent"));
      const { places, found, isLast } = await page(workflowId, value.upTo);
      const settled = places.filter(({ at }) => at < until);
      const upTo = settled.at(-1);
      if (!upTo) return false;
      await stored.put(workflowId, { upTo, uses: withRuns(value.uses, found.slice(0, settled.length)) }, version);
      return !isLast && settled.length === places.length;
    });

  return {
    /** Stores the counts of a workflow's runs, page by page. */
    async count(workflowId: string, now: number, closing: AbortSignal): Promise<void> {
      const until = new Date(now - SETTLED_MS).toISOString();
      while (!closing.aborted && (await countPage(workflowId, until))) await nextTurn();
    },
    /** The use of all versions of a workflow. */
    async of(workflowId: string, signal: AbortSignal): Promise<readonly VersionUse[]> {
      let { upTo, uses } = (await stored.get(workflowId))?.value ?? NONE;
      for (let isLast = false; !isLast;) {
        signal.throwIfAborted();
        const read = await page(workflowId, upTo);
        uses = withRuns(uses, read.found);
        upTo = read.places.at(-1) ?? upTo;
        isLast = read.isLast;
      }
      return uses;
    },
    /** The writes that take removed runs out of the counts. */
    async without(removed: readonly RunRecord[]): Promise<readonly ports.Write[]> {
      const workflows = new Map<string, RunRecord[]>();
      for (const run of removed) workflows.set(run.workflowId, [...(workflows.get(run.workflowId) ?? []), run]);
      return Promise.all(
        [...workflows].map(async ([workflowId, runs]) => {
          const read = await stored.get(workflowId);
          const { upTo, uses } = read?.value ?? NONE;
          const counted = runs.filter(({ startedAt, runId }) => upTo && isUpTo({ at: startedAt, id: runId }, upTo));
          return stored.write.put(
            workflowId,
            { ...(upTo && { upTo }), uses: withoutRuns(uses, counted) },
            read?.version ?? "absent",
          );
        }),
      );
    },
  };
}

type Counted = Pick<RunKey, "definition" | "bindingId" | "startedAt">;

/** `runs`: the oldest first. */
function withRuns(uses: readonly VersionUse[], runs: readonly Counted[]): readonly VersionUse[] {
  const all = new Map(uses.map((use) => [keyOf(use), use]));
  for (const { definition, bindingId, startedAt } of runs) {
    const own = { definition, ...(bindingId !== undefined && { bindingId }) };
    const { count = 0, firstUsedAt = startedAt } = all.get(keyOf(own)) ?? {};
    all.set(keyOf(own), { ...own, count: count + 1, firstUsedAt, lastUsedAt: startedAt });
  }
  return [...all.values()];
}

function withoutRuns(uses: readonly VersionUse[], runs: readonly RunRecord[]): readonly VersionUse[] {
  const removed = new Map<string, number>();
  for (const run of runs) removed.set(keyOf(run), (removed.get(keyOf(run)) ?? 0) + 1);
  return uses.map((use) => ({ ...use, count: use.count - (removed.get(keyOf(use)) ?? 0) })).filter(({ count }) => count > 0);
}

function keyOf({ definition, bindingId }: { readonly definition: string; readonly bindingId?: string | undefined }): string {
  return JSON.stringify([definition, bindingId]);
}

function isUpTo(one: { readonly at: string; readonly id: string }, last: { readonly at: string; readonly id: string }): boolean {
  return one.at < last.at || (one.at === last.at && one.id <= last.id);
}
