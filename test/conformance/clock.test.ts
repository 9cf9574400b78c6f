import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { defineAdapter, ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import { builtIn } from "../../core/src/grammar/app-ports.ts";
import { clockConformance } from "./clock.ts";
import { openAdapter } from "./open-adapter.ts";

clockConformance("system", () => ({
  adapter: systemClock(),
  // Node runs its timers in the order of falling due, so that this one, set last and a little longer, runs last.
  pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms + 20)),
}));

clockConformance("of an app without an adapter", () => ({
  adapter: defineAdapter({ name: "clock/built-in", port: ports.clock, needs: {}, open: () => builtIn.clock })(),
  pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms + 20)),
}));

clockConformance("manual", () => {
  const clock = createManualClock();
  return { adapter: manualClock({ clock }), pass: clock.advance };
});

clockConformance("manual, with jumps", () => {
  const clock = createManualClock();
  return { adapter: manualClock({ clock }), pass: clock.jump };
});

describe("clock/manual", () => {
  it("stays at its given time", async () => {
    const { port: clock } = await openAdapter(manualClock({ startAt: "2031-02-03T04:05:06.007Z" }));
    expect(new Date(clock.now()).toISOString()).toBe("2031-02-03T04:05:06.007Z");
    expect(new Date(createManualClock().now()).toISOString()).toBe("2030-01-01T00:00:00.000Z");
    expect(() => createManualClock({ startAt: "tomorrow" })).toThrow(RangeError);
  });

  it("shows each timer its own time, and runs those that are set on the way", async () => {
    const clock = createManualClock({ startAt: "2030-01-01T00:00:00.000Z" });
    const start = clock.now();
    const seen: number[] = [];
    const every = (): void => {
      seen.push(clock.now() - start);
      clock.after(10, every);
    };
    clock.after(10, every);
    await clock.advance(35);
    expect(seen).toEqual([10, 20, 30]);
    expect(clock.now() - start).toBe(35);
  });

  it("lets a loop of sleeps go on between timers, and starts what was set going just before", async () => {
    const clock = createManualClock();
    const seen: string[] = [];
    const loop = async (): Promise<void> => {
      for (let hops = 0; hops < 50; hops++) await Promise.resolve();
      for (let round = 1; round <= 3; round++) {
        await clock.sleep(10);
        seen.push(`round ${round}`);
      }
    };
    void loop();
    clock.after(25, () => seen.push("between"));
    await clock.advance(30);
    expect(seen).toEqual(["round 1", "round 2", "between", "round 3"]);
  });

  it("runs each due timer once in a jump, in order and at the new time", async () => {
    const clock = createManualClock();
    const start = clock.now();
    const seen: [name: string, ms: number][] = [];
    const every = (): void => {
      seen.push(["interval", clock.now() - start]);
      clock.after(10, every);
    };
    clock.after(10, every);
    clock.after(20, () => seen.push(["between", clock.now() - start]));
    clock.after(5, () => seen.push(["first", clock.now() - start]));
    await Promise.all([clock.jump(1000), clock.jump(9)]);
    expect(seen).toEqual([
      ["first", 1000],
      ["interval", 1000],
      ["between", 1000],
    ]);
    await clock.advance(1);
    expect(seen.at(-1)).toEqual(["interval", 1010]);
    expect(seen).toHaveLength(4);
  });

  it("adds up calls of advance that are not awaited", async () => {
    const clock = createManualClock();
    const start = clock.now();
    await Promise.all([clock.advance(10), clock.advance(5)]);
    expect(clock.now() - start).toBe(15);
  });

  it("passes on the error of a timer at its time, and continues with the next call", async () => {
    const clock = createManualClock();
    const start = clock.now();
    clock.after(5, () => {
      throw new Error("in the timer");
    });
    await expect(clock.advance(10)).rejects.toThrow("in the timer");
    expect(clock.now() - start).toBe(5);
    await clock.advance(10);
    expect(clock.now() - start).toBe(15);
  });
});
