const SHORT = /^(\d{1,15})(ms|s|m|h|d)$/;
// Years and months have no fixed length, so they are not accepted.
const ISO = /^P(?=[\dT])(?:(\d{1,9})W|(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?)$/;

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Texts that `parseDuration` accepts. */
export const DURATION: RegExp = new RegExp(`${SHORT.source}|${ISO.source}`);

/** Milliseconds of `500ms`, `10s`, `5m`, `2h`, `1d`, or of ISO 8601 without years and months; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const short = SHORT.exec(text);
  if (short) return Number(short[1]) * UNITS[short[2] as keyof typeof UNITS];
  const iso = ISO.exec(text);
  if (!iso) return undefined;
  const [weeks, days, hours, minutes, seconds] = iso.slice(1).map((part) => Number(part ?? 0)) as [
    ...[number, number, number, number, number],
  ];
  return (weeks * 7 + days) * UNITS.d + hours * UNITS.h + minutes * UNITS.m + Math.round(seconds * UNITS.s);
}

/** Whether the day with which an ISO 8601 date or time begins exists. JavaScript reads 30 February as 2 March. */
export function isExistingDay(text: string): boolean {
  const day = text.slice(0, 10);
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day);
}
