const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** `35 ms`, `4.2 s`, `3 min 20 s`: the two largest units. */
export function describeDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 60_000) return `${(Math.floor(milliseconds / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(milliseconds / 1_000);
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  const [[unit, size], next] = [UNITS[first]!, UNITS[first + 1]];
  const rest = next ? Math.floor((seconds % size) / next[1]) : 0;
  const whole = `${Math.floor(seconds / size)} ${unit}`;
  return next && rest > 0 ? `${whole} ${rest} ${next[0]}` : whole;
}

/** A period that someone chose, in its largest whole unit and without loss: `12 h`, `90 min`, `1.5 s`. */
export function describePeriod(milliseconds: number): string {
  const seconds = milliseconds / 1_000;
  const [unit, size] = UNITS.find(([, each]) => seconds >= each && seconds % each === 0) ?? ["s", 1];
  return `${seconds / size} ${unit}`;
}
