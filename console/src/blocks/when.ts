const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const time = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const weekday = new Intl.DateTimeFormat("en", { weekday: "long" });
const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });

/** Clocks of two machines may differ by this much. */
const SOON_S = 5;
const HOUR_S = 3600;
/** A weekday names one day within this many days. */
const WEEK = 6;

/**
 * A time as people say it: `3 minutes ago`, `2 hours ago` of the same day, `yesterday, 18:04`, `Monday, 09:30` within a week, `Mar 12` within the
 * year, and else `Mar 12, 2029`. Times to come likewise.
 */
export function writeWhen(at: Date, now: Date): string {
  const seconds = Math.round((at.getTime() - now.getTime()) / 1000);
  const days = daysBetween(at, now);
  if (Math.abs(seconds) < 60) return seconds > SOON_S ? "in a moment" : "just now";
  if (Math.abs(seconds) < HOUR_S) return relative.format(Math.trunc(seconds / 60), "minute");
  if (days === 0) return relative.format(Math.trunc(seconds / HOUR_S), "hour");
  if (Math.abs(days) === 1) return `${relative.format(days, "day")}, ${time.format(at)}`;
  if (Math.abs(days) <= WEEK) return `${weekday.format(at)}, ${time.format(at)}`;
  return (at.getFullYear() === now.getFullYear() ? day : dayOfYear).format(at);
}

/** The date and the time, to the second. */
export function writeWhole(at: Date): string {
  return whole.format(at);
}

/** Calendar days, in the time zone of the reader. Days may have 23 or 25 hours. */
function daysBetween(at: Date, now: Date): number {
  const [one, other] = [at, now].map((date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()));
  return Math.round((one! - other!) / 86_400_000);
}
