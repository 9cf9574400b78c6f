/** Milliseconds to wait. A negative duration is 0. Throws RangeError for an invalid number of milliseconds. */
export function checkDuration(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError("A duration is a finite number of milliseconds");
  return Math.max(0, ms);
}
