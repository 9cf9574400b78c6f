import type { Tone } from "../StatusBadge.svelte";

/** A number of runs, and the values of filters that find them. */
export interface CountedRuns {
  readonly text: string;
  readonly count: number;
  readonly tone?: Tone | undefined;
  readonly filters: Readonly<Record<string, string>>;
}

/** What a count of runs tells, in lines: by outcome, by cause, by agent or workflow. */
export interface RunCounts {
  readonly total: number;
  /** False if only the newest runs are counted. */
  readonly isComplete: boolean;
  readonly outcomes: readonly CountedRuns[];
  readonly lines: readonly { readonly title: string; readonly items: readonly CountedRuns[] }[];
}

/** Items of a line. */
const SHOWN = 5;

/** The largest sums of groups that have the same filters. Groups without filters do not count. */
export function summed<Group extends { readonly count: number }>(
  groups: readonly Group[],
  itemOf: (group: Group) => Omit<CountedRuns, "count"> | undefined,
): readonly CountedRuns[] {
  const sums = new Map<string, CountedRuns>();
  for (const group of groups) {
    const item = itemOf(group);
    if (!item) continue;
    const key = JSON.stringify(item.filters);
    sums.set(key, { ...item, count: group.count + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()].toSorted((one, other) => other.count - one.count).slice(0, SHOWN);
}

/** A code in words. */
export function wordsOfCode(code: string): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
