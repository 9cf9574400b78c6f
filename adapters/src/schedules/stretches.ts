import type { PlannedTimes } from "./planned-times.ts";

/** Planned times from the first to the second that were decided one after another, without a gap. Milliseconds since 1970. */
export type Stretch = readonly [from: number, to: number];

/** Stretches that are kept. A clock that is set ahead begins one, and its correction another. */
const MOST = 10;

/** Whether a planned time was decided, also when the clock was ahead. */
export function isDecided(stretches: readonly Stretch[], planned: number): boolean {
  return stretches.some(([from, to]) => from <= planned && planned <= to);
}

/** The stretches after these planned times were decided, oldest first. They have no gaps, unless one was decided before. */
export function withDecided(
  stretches: readonly Stretch[],
  decided: readonly number[],
  times: Pick<PlannedTimes, "after">,
): readonly Stretch[] {
  let all = stretches;
  for (const planned of decided) {
    const newest = all.at(-1);
    const continues = newest !== undefined && times.after(newest[1], 1)[0] === planned;
    all = continues ? [...all.slice(0, -1), [newest[0], planned]] : [...all, [planned, planned]];
  }
  return all.slice(-MOST);
}
