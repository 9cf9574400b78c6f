import type { FindPlace, FoundPage } from "./find-page.ts";
import { RUN_SEARCH } from "./run-search.ts";

/** Limits of one count. */
export const RUN_COUNT = {
  /** Maximum runs that are counted, and pages of a search that are read for them. */
  runs: 2000,
  pages: 20,
  /** Maximum groups of an answer. */
  groups: 100,
} as const;

/** Runs with the same values, and the newest of them. */
export interface RunGroup<Run> {
  readonly count: number;
  readonly newest: Run;
}

/** What a count found. */
export interface RunCount<Run> {
  /** The counted runs. */
  readonly total: number;
  /** False if older runs match as well. */
  readonly isComplete: boolean;
  /** The largest groups first; of equal groups, the one with the newest run. */
  readonly groups: readonly RunGroup<Run>[];
  /** Groups that were left out, because there are too many. */
  readonly leftOut: number;
}

/**
 * Counts the newest runs that match a search, in groups of runs with the same values. `search` reads a page of them. The work is bounded: of many
 * runs, the newest `RUN_COUNT.runs` are counted.
 */
export async function countRuns<Run>(
  search: (page: { readonly after?: FindPlace | undefined; readonly limit: number }) => Promise<FoundPage<Run>>,
  valuesOf: (run: Run) => readonly (string | undefined)[],
): Promise<RunCount<Run>> {
  const groups = new Map<string, { count: number; readonly newest: Run }>();
  let total = 0;
  let after: FindPlace | undefined;
  let pages = 0;
  do {
    const page = await search({ after, limit: Math.min(RUN_SEARCH.page.most, RUN_COUNT.runs - total) });
    for (const run of page.items) {
      const key = JSON.stringify(valuesOf(run));
      const known = groups.get(key);
      if (known) known.count++;
      else groups.set(key, { count: 1, newest: run });
    }
    total += page.items.length;
    after = page.next;
    pages++;
  } while (after && total < RUN_COUNT.runs && pages < RUN_COUNT.pages);
  // Sorting is stable: the runs were read from the newest.
  const sorted = [...groups.values()].toSorted((one, other) => other.count - one.count);
  return {
    total,
    isComplete: after === undefined,
    groups: sorted.slice(0, RUN_COUNT.groups),
    leftOut: Math.max(sorted.length - RUN_COUNT.groups, 0),
  };
}
