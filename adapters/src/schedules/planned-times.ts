import { createHash } from "node:crypto";
import type { ports } from "@portico/core";
import { Cron } from "croner";

/** Planned times, in milliseconds since 1970. They are a function of the timing alone: all processes agree on them. */
export interface PlannedTimes {
  /** The first `count` planned times after `time`, oldest first. Fewer if there are no more. */
  after(time: number, count: number): readonly number[];
  /** The last `count` planned times at or before `time`, oldest first. */
  upTo(time: number, count: number): readonly number[];
}

/**
 * Read a timing. A local time that a change of clocks leaves out is planned at the end of the gap, and a local time that exists
 * twice is planned at its first instant. Expressions that repeat within the hour follow elapsed time. Throws RangeError for an
 * expression, a time zone or an interval that is not valid, and for an expression without any planned time.
 */
export function readTiming(timing: ports.ScheduleTiming): PlannedTimes {
  return "cron" in timing ? cronTimes(timing.cron, timing.timeZone ?? "UTC") : intervalTimes(timing.everyMs);
}

function intervalTimes(everyMs: number): PlannedTimes {
  if (!Number.isSafeInteger(everyMs) || everyMs < 1000) throw new RangeError("everyMs is a whole number from 1000");
  const from = (first: number, count: number) => Array.from({ length: count }, (_, at) => (first + at) * everyMs);
  return {
    after: (time, count) => from(Math.floor(time / everyMs) + 1, count),
    upTo: (time, count) => from(Math.floor(time / everyMs) - count + 1, count),
  };
}

function cronTimes(expression: string, timeZone: string): PlannedTimes {
  let cron: Cron;
  let first: Date | null;
  try {
    cron = new Cron(expression, { timezone: timeZone, mode: "5-part", paused: true });
    first = cron.nextRun(new Date(0));
  } catch {
    throw new RangeError("The cron expression or its time zone is not valid");
  }
  if (!first) throw new RangeError("The cron expression has no planned time");
  const times = (dates: readonly Date[]) => dates.map((date) => date.getTime());
  return {
    after: (time, count) => times(cron.nextRuns(count, new Date(time))),
    // The library looks strictly before a time, and knows whole seconds.
    upTo: (time, count) => times(cron.previousRuns(count, new Date(Math.floor(time / 1000) * 1000 + 1000))).toReversed(),
  };
}

/**
 * How many milliseconds after a planned time it takes effect: 0 to `jitterMs`, evenly spread. It depends only on the schedule and
 * the planned time, so that all processes and restarts agree.
 */
export function jitterOf(schedule: string, plannedAt: number, jitterMs: number): number {
  const hash = createHash("sha256")
    .update(JSON.stringify([schedule, plannedAt]))
    .digest();
  return Math.floor((hash.readUInt32BE(0) / 2 ** 32) * (jitterMs + 1));
}
