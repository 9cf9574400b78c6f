const part = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const change = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0, signDisplay: "exceptZero" });
const HOUR_MS = 3_600_000;

/** A share from 0 to 1 as text. */
export function writeShare(share: number | undefined): string {
  return share === undefined ? "–" : part.format(share);
}

/** How much more an amount is than before: `+25%`. */
export function writeChange(amount: number, before: number): string {
  if (before === 0) return amount === 0 ? "–" : "new";
  return change.format(amount / before - 1);
}

/** A time in its time zone: the first and the last day, or, of less than a day, its hours. */
export function writeDays({ since, until, timeZone }: { since: string; until: string; timeZone: string }): string {
  const [first, last] = [new Date(since), new Date(Date.parse(until) - 1)];
  const isShort = last.getTime() - first.getTime() < 24 * HOUR_MS - 1;
  const format = new Intl.DateTimeFormat(undefined, {
    dateStyle: "medium",
    timeZone,
    ...(isShort && { timeStyle: "short", hourCycle: "h23" }),
  } as Intl.DateTimeFormatOptions);
  return format.formatRange(first, last);
}
