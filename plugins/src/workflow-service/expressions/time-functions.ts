import type { Duration } from "@marcbachmann/cel-js/evaluator";
import { Refused } from "./cel-value.ts";
import { chargeForText, type FunctionGroup, type Spend } from "./library-function.ts";

const TIMESTAMP = "google.protobuf.Timestamp";
const DURATION = "google.protobuf.Duration";

/** Times. No function reads the clock, because a run that continues after a crash evaluates its expressions again. */
export const timeFunctions: FunctionGroup = {
  title: "Times",
  functions: [
    {
      usage: "timestamp(TEXT), timestamp(SECONDS)",
      summary: "A time, of ISO 8601 or of seconds since 1970. The start of the run is `timestamp(run.startedAt)`.",
      example: ["timestamp('2030-01-31T10:00:00Z')", "2030-01-31T10:00:00.000Z"],
    },
    {
      usage: "duration(TEXT)",
      summary: "A duration: hours, minutes, seconds. It can be added to times, and is the difference of two times.",
      example: ["timestamp('2030-01-31T10:00:00Z') + duration('36h')", "2030-02-01T22:00:00.000Z"],
    },
    {
      usage: "TIME.getFullYear(), TIME.getHours(), …",
      summary:
        "One field of a time, in UTC or in a given time zone: `getFullYear`, `getMonth` (January is 0), `getDate`, `getDayOfWeek` (Sunday is 0), `getHours`, `getMinutes`, `getSeconds`, `getMilliseconds`.",
      example: ["timestamp('2030-01-31T23:30:00Z').getDate('Europe/Berlin')", 1],
    },
    {
      usage: "TIME.format(PATTERN, ZONE)",
      summary:
        "A time as text: `%Y` year, `%m` month, `%d` day, `%H` hour, `%M` minute, `%S` second, `%L` milliseconds, `%j` day of the year, `%u` weekday from Monday (1), `%a` and `%A` its name, `%b` and `%B` the month's name, `%s` seconds since 1970; `%%` is a percent sign. ZONE is a name such as `Europe/Berlin`; default: UTC.",
      example: ["timestamp('2030-01-31T23:30:00Z').format('%a %d.%m.%Y %H:%M', 'Europe/Berlin')", "Fri 01.02.2030 00:30"],
      overloads: (spend) => ({
        [`${TIMESTAMP}.format(string): string`]: (time: Date, pattern: string) =>
          formatTime(time, { pattern, zone: "UTC" }, spend),
        [`${TIMESTAMP}.format(string, string): string`]: (time: Date, pattern: string, zone: string) =>
          formatTime(time, { pattern, zone }, spend),
      }),
    },
    {
      usage: "int(TIME)",
      summary: "Whole seconds since 1970.",
      example: ["int(timestamp('2030-01-31T10:00:00Z'))", 1_896_084_000],
      overloads: () => ({ [`int(${TIMESTAMP}): int`]: (time: Date) => BigInt(Math.floor(time.getTime() / 1000)) }),
    },
    {
      usage: "string(TIME), string(DURATION)",
      summary: "A time in ISO 8601, or a duration in seconds.",
      example: ["string(duration('1h')) + ' ' + string(timestamp(0))", "3600s 1970-01-01T00:00:00.000Z"],
      overloads: () => ({
        [`string(${TIMESTAMP}): string`]: (time: Date) => time.toISOString(),
        [`string(${DURATION}): string`]: (duration: Duration) => `${duration.valueOf() / 1000}s`,
      }),
    },
  ],
};

interface Format {
  readonly pattern: string;
  /** IANA name. */
  readonly zone: string;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];

function formatTime(time: Date, { pattern, zone }: Format, spend: Spend): string {
  spend(20);
  chargeForText(pattern.length * 10, spend);
  const local = new Date(time.getTime() + offsetOf(time, zone));
  return pattern.replace(/%(.)?/gsu, (_clause, field: string | undefined) => fieldOf(field, local, time));
}

function fieldOf(field: string | undefined, local: Date, time: Date): string {
  const day = DAYS[local.getUTCDay()]!;
  const month = MONTHS[local.getUTCMonth()]!;
  switch (field) {
    case "Y":
      return padded(local.getUTCFullYear(), 4);
    case "m":
      return padded(local.getUTCMonth() + 1, 2);
    case "d":
      return padded(local.getUTCDate(), 2);
    case "H":
      return padded(local.getUTCHours(), 2);
    case "M":
      return padded(local.getUTCMinutes(), 2);
    case "S":
      return padded(local.getUTCSeconds(), 2);
    case "L":
      return padded(local.getUTCMilliseconds(), 3);
    case "j":
      return padded(1 + Math.floor((local.getTime() - Date.UTC(local.getUTCFullYear(), 0, 1)) / 86_400_000), 3);
    case "u":
      return String(local.getUTCDay() || 7);
    case "a":
      return day.slice(0, 3);
    case "A":
      return day;
    case "b":
      return month.slice(0, 3);
    case "B":
      return month;
    case "s":
      return String(Math.floor(time.getTime() / 1000));
    case "%":
      return "%";
    default:
      throw new Refused("format() of a time knows %Y, %m, %d, %H, %M, %S, %L, %j, %u, %a, %A, %b, %B, %s and %%");
  }
}

function padded(number: number, digits: number): string {
  return String(number).padStart(digits, "0");
}

/** Formats of time zones, which are slow to create. */
const zones = new Map<string, Intl.DateTimeFormat>();
const ZONES_KEPT = 100;

/** How far the zone's clocks are ahead of UTC at that time, in milliseconds. Throws Refused for unknown zones. */
function offsetOf(time: Date, zone: string): number {
  if (zone === "UTC") return 0;
  const parts = Object.fromEntries(
    zoneFormat(zone)
      .formatToParts(time)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year, month, day, hour, minute, second } = parts as Record<string, number>;
  const shown = Date.UTC(year!, month! - 1, day, hour, minute, second);
  return shown - Math.floor(time.getTime() / 1000) * 1000;
}

function zoneFormat(zone: string): Intl.DateTimeFormat {
  const known = zones.get(zone);
  if (known) return known;
  const two = "2-digit";
  const fields = { year: "numeric", month: two, day: two, hour: two, minute: two, second: two, hourCycle: "h23" } as const;
  let made: Intl.DateTimeFormat;
  try {
    made = new Intl.DateTimeFormat("en-US", { timeZone: zone, ...fields });
  } catch {
    throw new Refused("format() takes the name of a time zone, such as Europe/Berlin");
  }
  // Names of zones can be computed from data of callers.
  if (zones.size >= ZONES_KEPT) zones.clear();
  zones.set(zone, made);
  return made;
}
