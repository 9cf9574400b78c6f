import { jitterOf, readTiming } from "@portico/adapters/schedules/planned-times";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const DAY = 86_400_000;
const at = (text: string) => Date.parse(text);
const iso = (times: readonly number[]) => times.map((time) => new Date(time).toISOString());

const timings = fc.oneof(
  fc.record({
    cron: fc.constantFrom("30 2 * * *", "*/20 * * * *", "0 3 * * 1-5", "15 1,2,3 * * *", "0 0 1 * *", "*/7 2 * * 0"),
    timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"),
  }),
  fc.record({ everyMs: fc.integer({ min: 1000, max: 3 * DAY }) }),
);
/** Two years with all of their changes of clocks, to the millisecond. */
const instants = fc.integer({ min: at("2026-01-01T00:00:00Z"), max: at("2028-01-01T00:00:00Z") });

describe("planned times", () => {
  it("are the same from whatever instant before them they are looked for", () => {
    fc.assert(
      fc.property(timings, instants, fc.integer({ min: 1, max: 20 }), (timing, time, count) => {
        const plan = readTiming(timing);
        const times = plan.after(time, count + 1);
        expect(times.every((planned, index) => planned > (index === 0 ? time : times[index - 1]!))).toBe(true);
        expect(plan.after(times[0]!, count)).toEqual(times.slice(1));
        expect(plan.after(times[0]! - 1, 1)).toEqual(times.slice(0, 1));
      }),
    );
  });

  it("are the same looking back as looking ahead, over changes of clocks", () => {
    fc.assert(
      fc.property(timings, instants, fc.integer({ min: 1, max: 20 }), (timing, time, count) => {
        const plan = readTiming(timing);
        const times = plan.after(time, count);
        expect(plan.upTo(times.at(-1)!, count)).toEqual(times);
        expect(plan.upTo(times.at(-1)! - 1, count).at(-1)).toBe(plan.after(plan.upTo(time, 1)[0]! - 1, count).at(-1));
      }),
    );
  });

  it("that clocks leave out in spring are planned once, at the end of the gap", () => {
    const plan = readTiming({ cron: "30 2 * * *", timeZone: "Europe/Berlin" });
    expect(iso(plan.after(at("2026-03-28T12:00:00Z"), 2))).toEqual(["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]);
  });

  it("that clocks show twice in autumn are planned once, at the first instant", () => {
    const plan = readTiming({ cron: "30 2 * * *", timeZone: "Europe/Berlin" });
    expect(iso(plan.after(at("2026-10-24T12:00:00Z"), 2))).toEqual(["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]);
  });

  it("within an hour follow elapsed time when clocks change", () => {
    const plan = readTiming({ cron: "*/30 * * * *", timeZone: "Europe/Berlin" });
    for (const change of ["2026-03-28T22:00:00Z", "2026-10-24T22:00:00Z"]) {
      const times = plan.after(at(change), 12);
      expect(times.map((time, index) => time - at(change) - (index + 1) * 1_800_000)).toEqual(times.map(() => 0));
    }
  });

  it.each([
    { cron: "61 * * * *" },
    { cron: "0 0 0 * * *" },
    { cron: "0 0 30 2 *" },
    { cron: "0 0 * * *", timeZone: "Nowhere/City" },
    { everyMs: 999 },
    { everyMs: 1000.5 },
  ])("are refused for %j", (timing) => {
    expect(() => readTiming(timing)).toThrow(RangeError);
  });
});

describe("jitter", () => {
  it("stays within its limit, and is the same for a schedule and planned time", () => {
    fc.assert(
      fc.property(fc.string(), instants, fc.integer({ min: 0, max: DAY }), (schedule, time, jitterMs) => {
        const jitter = jitterOf(schedule, time, jitterMs);
        expect(jitter).toBeGreaterThanOrEqual(0);
        expect(jitter).toBeLessThanOrEqual(jitterMs);
        expect(jitterOf(schedule, time, jitterMs)).toBe(jitter);
      }),
    );
  });

  it("differs between schedules of one planned time", () => {
    const of = (count: number) => new Set(Array.from({ length: count }, (_, index) => jitterOf(`s${index}`, 0, DAY)));
    expect(of(100).size).toBeGreaterThan(90);
  });
});
