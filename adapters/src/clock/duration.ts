/** Milliseconds to wait: what is already past is no wait. Throws RangeError for what is no number of milliseconds. */
export function checkDuration(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError("A duration is a finite number of milliseconds");
  return Math.max(0, ms);
}
