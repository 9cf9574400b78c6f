import * as v from "valibot";
import type { ScheduleOutcome, ScheduleState, ScheduleTiming } from "../ports/schedules.ts";

const text = v.string();

/**
 * `invalid`: it has a fault and starts nothing. `failing`: its newest start with a result failed. `ok`: that start succeeded, or was stopped.
 * `new`: no start has ended yet, or its run is no longer stored.
 */
export const SCHEDULE_STATES = ["invalid", "paused", "failing", "ok", "new"] as const;

/** What lists say of a schedule, without its name. Times are ISO 8601. */
export const scheduleAnswer = {
  cron: v.optional(text),
  timeZone: v.optional(text),
  everyMs: v.optional(v.number()),
  state: v.picklist(SCHEDULE_STATES),
  paused: v.boolean(),
  /** The next planned times. */
  next: v.array(text),
  /** The newest planned time that was started. */
  last: v.optional(text),
  /** The newest start that has ended. */
  lastEnd: v.optional(
    v.object({ runId: text, status: v.picklist(["completed", "failed", "stopped"]), plannedAt: text, endedAt: text }),
  ),
  /** Failures since the last success, of the newest ten starts. */
  failures: v.number(),
  /** The last planned times that were missed and not caught up. A count of 100 means 100 or more. */
  missed: v.optional(v.object({ count: v.number(), last: text })),
  /** The number of planned times that wait for the end of the start before them. Absent if none waits. */
  waiting: v.optional(v.number()),
  /** Why it does not start anything. */
  fault: v.optional(text),
};

/** What lists say of a schedule. */
export type ScheduleAnswer = v.InferOutput<v.ObjectSchema<typeof scheduleAnswer, undefined>>;

/** A schedule with this timing and state, as lists show it. */
export function toScheduleAnswer(timing: ScheduleTiming, state: ScheduleState): ScheduleAnswer {
  const { isPaused, next, last, ended, failures, missed, waiting } = state;
  return {
    ...timing,
    ...{ state: stateOf(state), paused: isPaused, next: next.map(toText), failures },
    ...(last !== undefined && { last: toText(last) }),
    ...(ended && { lastEnd: toEnd(ended) }),
    ...(missed && { missed: { count: missed.count, last: toText(missed.last) } }),
    ...(waiting !== undefined && { waiting }),
  };
}

/** A schedule that starts nothing because of a fault. */
export function faultySchedule(timing: ScheduleTiming, fault: string): ScheduleAnswer {
  return { ...timing, state: "invalid", paused: false, next: [], failures: 0, fault };
}

function stateOf({ isPaused, failures, ended }: ScheduleState): ScheduleAnswer["state"] {
  if (isPaused) return "paused";
  if (failures > 0) return "failing";
  return ended ? "ok" : "new";
}

function toEnd({ runId, status, plannedAt, at }: ScheduleOutcome & { readonly plannedAt: number }): ScheduleAnswer["lastEnd"] {
  // An open start is not an end.
  if (status === "open") return undefined;
  return { runId, status, plannedAt: toText(plannedAt), endedAt: toText(at ?? plannedAt) };
}

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
