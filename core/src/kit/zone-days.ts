const DAY_MS = 24 * 60 * 60_000;
const HALF_DAY_MS = DAY_MS / 2;

/** The calendar days of a time zone. Times are milliseconds since 1970, and dates are written `2030-12-31`. */
export interface Days {
  /** When the day of a time began. */
  startOf(ms: number): number;
  /** When the day after it begins. */
  endOf(ms: number): number;
  /** The date of a time. */
  dateOf(ms: number): string;
  /** When a date begins. */
  startOfDate(date: string): number;
}

/** The days of an IANA time zone, such as `Europe/Berlin`. Throws RangeError for an unknown zone. */
export function daysOf(timeZone: string): Days {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    ...{ year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" },
  });
  const offsetAt = (ms: number) => {
    const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const { year, month, day, hour, minute, second } = parts as Record<string, number>;
    return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000;
  };
  const startOf = (ms: number) => {
    const offset = offsetAt(ms);
    const local = Math.floor((ms + offset) / DAY_MS) * DAY_MS;
    // The clocks may have changed since midnight.
    return local - offsetAt(local - offset);
  };
  return {
    startOf,
    // No day has more than 25 hours, so 36 hours after its beginning is within the next one.
    endOf: (ms) => startOf(startOf(ms) + DAY_MS + HALF_DAY_MS),
    dateOf: (ms) => new Date(ms + offsetAt(ms)).toISOString().slice(0, 10),
    startOfDate(date) {
      // Noon of the date, because clocks change at night.
      const noon = Date.parse(date) + HALF_DAY_MS;
      return startOf(noon - offsetAt(noon));
    },
  };
}
