/** Planned times of a schedule that wait at most. */
const MOST_WAITING = 100;

/** The planned times that wait after these were planned, oldest first, and how many of them are skipped because too many wait. */
export function withWaiting(
  waiting: readonly number[],
  planned: readonly number[],
): { readonly waiting: readonly number[]; readonly skipped: number } {
  const all = [...waiting, ...planned];
  return { waiting: all.slice(0, MOST_WAITING), skipped: Math.max(0, all.length - MOST_WAITING) };
}
