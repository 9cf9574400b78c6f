import { dueTimes } from "@portico/adapters/schedules/due-times";
import { readTiming } from "@portico/adapters/schedules/planned-times";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const START = Date.parse("2026-10-20T00:00:00Z");

const timings = fc.oneof(
  fc.record({
    cron: fc.constantFrom("30 2 * * *", "*/20 * * * *", "0 3 * * 1-5", "*/7 2 * * 0"),
    timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York"),
  }),
  fc.record({ everyMs: fc.integer({ min: 10 * MINUTE, max: 2 * DAY }) }),
);
const plannings = fc
  .record({ timing: timings, jitterMs: fc.integer({ min: 0, max: 30 * MINUTE }), catchUp: fc.integer({ min: 0, max: 5 }) })
  .map(({ timing, ...rest }) => ({ schedule: "s", times: readTiming(timing), graceMs: MINUTE, ...rest }));
/** Steps of a clock: usual ones, sleeps over many planned times, and steps back. */
const steps = fc.array(
  fc.oneof(fc.integer({ min: 0, max: 20 * MINUTE }), fc.integer({ min: 0, max: 3 * DAY }), fc.integer({ min: -2 * DAY, max: 0 })),
  { maxLength: 25 },
);

/** All that is started while the clock takes these steps. Only `through` is kept between them, as over restarts. */
function startedOver(planning: Parameters<typeof dueTimes>[0], clock: readonly number[]): readonly number[] {
  let through = START;
  return clock.flatMap((now) => {
    const decided = dueTimes(planning, through, now);
    expect(decided.through).toBeGreaterThanOrEqual(through);
    expect(decided.due.every((planned) => planned <= now)).toBe(true);
    through = decided.through;
    return decided.due;
  });
}

function clockOf(taken: readonly number[]): readonly number[] {
  let now = START;
  return taken.map((step) => (now = Math.max(START, now + step)));
}

describe("a schedule", () => {
  it("starts planned times once and in order, whatever its clock does", () => {
    fc.assert(
      fc.property(plannings, steps, (planning, taken) => {
        const started = startedOver(planning, clockOf(taken));
        expect(started).toEqual([...new Set(started)].toSorted((a, b) => a - b));
      }),
    );
  });

  it("loses no planned time if it catches up all, whatever its clock does", () => {
    fc.assert(
      fc.property(plannings, steps, (planning, taken) => {
        const clock = clockOf(taken);
        const latest = Math.max(START, ...clock);
        const end = latest + planning.jitterMs;
        const started = startedOver({ ...planning, catchUp: 5000 }, [...clock, end]);
        const planned: number[] = [];
        for (let [next] = planning.times.after(START, 1); next! <= latest; [next] = planning.times.after(next!, 1))
          planned.push(next!);
        expect(started.filter((time) => time <= latest)).toEqual(planned);
      }),
      { numRuns: 30 },
    );
  });

  it("starts after a long sleep only the newest missed times, as many as it catches up", () => {
    fc.assert(
      fc.property(plannings, fc.integer({ min: 1, max: 400 }), (planning, days) => {
        const now = START + days * DAY;
        const missed = dueTimes(planning, START, now).due.filter((time) => time < now - planning.graceMs - planning.jitterMs);
        expect(missed.length).toBeLessThanOrEqual(planning.catchUp);
        const newest = planning.times.upTo(now - planning.graceMs - planning.jitterMs - 1, planning.catchUp);
        expect(missed).toEqual(newest.filter((time) => time > START));
      }),
    );
  });
});
