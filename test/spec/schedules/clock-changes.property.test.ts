import { readTiming } from "@portico/adapters/schedules/planned-times";
import { describe, expect, it } from "vitest";

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const LONG = process.env.PORTICO_LONG !== undefined;

/** Zones that change clocks by an hour, by half an hour and by two hours, at midnight, and by a whole day at the date line in 2011. */
const SOME_ZONES = [
  ...["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "Africa/Cairo", "Asia/Beirut", "America/Havana"],
  ...["America/Santiago", "Africa/Casablanca", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"],
];
const ZONES = LONG ? Intl.supportedValuesOf("timeZone") : SOME_ZONES;

const every = (count: number, step = 1) => Array.from({ length: Math.ceil(count / step) }, (_, at) => at * step);
const EXPRESSIONS = [
  { cron: "0 2,14 * * *", minutes: [0], hours: [2, 14] },
  { cron: "30 1-3 * * *", minutes: [30], hours: [1, 2, 3] },
  { cron: "*/20 0-2,23 * * *", minutes: every(60, 20), hours: [0, 1, 2, 23] },
  { cron: "15 */2 * * *", minutes: [15], hours: every(24, 2) },
  { cron: "5 0 * * *", minutes: [5], hours: [0] },
  { cron: "30 2 * * 0", minutes: [30], hours: [2], day: 0 },
  { cron: "0 * * * *", minutes: [0], hours: every(24) },
  { cron: "*/20 0-23 * * *", minutes: every(60, 20), hours: every(24) },
] as const;
type Expression = (typeof EXPRESSIONS)[number];

const FIELDS = {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
} as const;
const formats: Record<string, Intl.DateTimeFormat> = {};

/** The local time of each minute, as if it were a time in UTC. */
function localMinutes(timeZone: string, from: number, to: number): readonly number[] {
  const format = (formats[timeZone] ??= new Intl.DateTimeFormat("en-US", { timeZone, ...FIELDS }));
  return Array.from({ length: (to - from) / MINUTE }, (_, at) => {
    const part = Object.fromEntries(format.formatToParts(from + at * MINUTE).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(part["year"]!, part["month"]! - 1, part["day"], part["hour"], part["minute"]);
  });
}

/** The planned times, minute by minute. */
function expected(expression: Expression, shown: readonly number[], from: number): readonly number[] {
  const { minutes, hours } = expression;
  const isMatch = (local: number) => {
    const time = new Date(local);
    const isDay = !("day" in expression) || time.getUTCDay() === expression.day;
    return (
      isDay &&
      (hours as readonly number[]).includes(time.getUTCHours()) &&
      (minutes as readonly number[]).includes(time.getUTCMinutes())
    );
  };
  const planned: number[] = [];
  let latest = shown[0]! - MINUTE;
  for (const [at, local] of shown.entries()) {
    const isPlanned =
      hours.length === 24
        ? isMatch(local)
        : every(Math.max(0, (local - latest) / MINUTE)).some((ago) => isMatch(local - ago * MINUTE));
    if (isPlanned) planned.push(from + at * MINUTE);
    latest = Math.max(latest, local);
  }
  return planned;
}

/** Ends of pieces of a year: all of it, or two days around each change of clocks. */
function piecesOf(timeZone: string, year: number): readonly (readonly [number, number])[] {
  const [start, end] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 2)];
  if (LONG) return [[start, end]];
  const zoneAt = (time: number) => localMinutes(timeZone, time, time + MINUTE)[0]! - time;
  const days = every((end - start) / DAY).map((day) => start + day * DAY);
  return days.filter((day) => zoneAt(day) !== zoneAt(day + DAY)).map((day) => [day, day + 2 * DAY]);
}

describe("planned times of a cron expression, over changes of clocks", () => {
  it.each(ZONES)(
    "are each matching local time once, or each matching instant for every hour: %s",
    (timeZone) => {
      for (const year of timeZone === "Pacific/Apia" ? [2011, 2026] : [2026]) {
        for (const [from, to] of piecesOf(timeZone, year)) {
          const shown = localMinutes(timeZone, from, to);
          for (const expression of EXPRESSIONS) {
            const planned = expected(expression, shown, from);
            const plan = readTiming({ cron: expression.cron, timeZone });
            expect(plan.after(from - 1, planned.length), `${expression.cron} from ${new Date(from).toISOString()}`).toEqual(
              planned,
            );
            expect(plan.upTo(to - 1, planned.length), `${expression.cron} back`).toEqual(planned);
          }
        }
      }
    },
    LONG ? 3_600_000 : 30_000,
  );
});
