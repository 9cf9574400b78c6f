import { createHash } from "node:crypto";
import type { ports } from "@portico/core";
import { cronTimes } from "./cron-times.ts";
import type { PlannedTimes } from "./times-in-order.ts";

export type { PlannedTimes } from "./times-in-order.ts";

/**
 * Read a timing. A local time that a change of clocks leaves out is planned at the end of the gap, and a local time that exists
 * twice is planned at its first instant. Expressions for every hour follow elapsed time. Throws RangeError for an expression, a time
 * zone or an interval that is not valid, and for an expression without any planned time.
 */
export function readTiming(timing: ports.ScheduleTiming): PlannedTimes {
  return "cron" in timing ? timesOfCron(timing.cron, timing.timeZone ?? "UTC") : intervalTimes(timing.everyMs);
}

function intervalTimes(everyMs: number): PlannedTimes {
  if (!Number.isSafeInteger(everyMs) || everyMs < 1000) throw new RangeError("everyMs is a whole number from 1000");
  const from = (first: number, count: number) => Array.from({ length: count }, (_, at) => (first + at) * everyMs);
  return {
    after: (time, count) => from(Math.floor(time / everyMs) + 1, count),
    upTo: (time, count) => from(Math.floor(time / everyMs) - count + 1, count),
  };
}

function timesOfCron(expression: string, timeZone: string): PlannedTimes {
  let times: PlannedTimes;
  let first: number | undefined;
  try {
    times = cronTimes(expression, timeZone);
    [first] = times.after(0, 1);
  } catch {
    throw new RangeError("The cron expression or its time zone is not valid");
  }
  if (first === undefined) throw new RangeError("The cron expression has no planned time");
  return times;
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
