import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface ClockUnderTest {
  readonly adapter: Adapter<typeof ports.clock>;
  /** Resolves when `ms` milliseconds of this clock have passed and everything that fell due has run. */
  pass(ms: number): Promise<void>;
}

/** Options of `clockConformance`. */
export interface ClockConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The law of the clock port, as vitest tests. `make` is called once per test. No test measures a duration: they look at what ran,
 * and in which order.
 */
export function clockConformance(
  name: string,
  make: () => ClockUnderTest | Promise<ClockUnderTest>,
  { others = [] }: ClockConformanceOptions = {},
): void {
  describeSuite(`clock port: ${name}`, () => {
    let pass: ClockUnderTest["pass"];
    let opened: OpenAdapter<ports.Clock>;
    let clock: ports.Clock;
    let ran: string[];
    beforeEach(async () => {
      const made = await make();
      pass = made.pass;
      opened = await openAdapter(made.adapter, others);
      clock = opened.port;
      ran = [];
    });
    afterEach(() => opened.close());

    const note = (what: string) => (): void => void ran.push(what);

    it("tells milliseconds since 1970, and they pass", async () => {
      const before = clock.now();
      expect(new Date(before).getUTCFullYear()).toBeGreaterThan(2020);
      await pass(20);
      expect(clock.now()).toBeGreaterThan(before);
    });

    describe("after", () => {
      it("runs once, in the order of falling due, and first set first among equals", async () => {
        clock.after(30, note("third"));
        clock.after(10, note("first"));
        clock.after(20, note("second"));
        clock.after(20, note("second again"));
        expect(ran).toEqual([]);
        await pass(40);
        expect(ran).toEqual(["first", "second", "second again", "third"]);
        await pass(40);
        expect(ran).toHaveLength(4);
      });

      it("never runs within the call, even when nothing is left to wait for", async () => {
        for (const ms of [0, -5]) clock.after(ms, note(String(ms)));
        expect(ran).toEqual([]);
        await pass(5);
        expect([...ran].sort()).toEqual(["-5", "0"]);
      });

      it("runs nothing that is cancelled, nor lets refresh bring it back", async () => {
        const timer = clock.after(10, note("cancelled"));
        timer.cancel();
        timer.cancel();
        timer.refresh();
        await pass(30);
        expect(ran).toEqual([]);
      });

      it("counts again from a refresh", async () => {
        const timer = clock.after(30, note("refreshed"));
        clock.after(20, () => timer.refresh());
        clock.after(40, note("after its first time"));
        // On a machine that stalls, all of these fall due at once, and the refreshed one still later.
        while (ran.length < 2) await pass(20);
        expect(ran).toEqual(["after its first time", "refreshed"]);
      });

      it("does not run again by a refresh after it ran, or while it runs", async () => {
        const timer = clock.after(5, () => {
          ran.push("once");
          timer.refresh();
        });
        await pass(20);
        timer.refresh();
        await pass(20);
        expect(ran).toEqual(["once"]);
      });

      it("waits as long as it is told, though it be months", async () => {
        const timers = [25 * DAY_MS, 100 * DAY_MS].map((ms) => clock.after(ms, note("too early")));
        await pass(10);
        for (const timer of timers) timer.refresh();
        await pass(10);
        for (const timer of timers) timer.cancel();
        expect(ran).toEqual([]);
      });

      it("refuses a value that is not a number of milliseconds", async () => {
        for (const ms of [Number.NaN, Number.POSITIVE_INFINITY]) {
          expect(() => clock.after(ms, note("never"))).toThrow(RangeError);
          await expect(clock.sleep(ms)).rejects.toThrow(RangeError);
        }
      });

      it("does not keep the process alive", () => {
        // Node lists what keeps it running; nothing else can happen between the two looks.
        const timeouts = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
        const before = timeouts();
        const timers = [HOUR_MS, 100 * DAY_MS].map((ms) => clock.after(ms, note("never")));
        expect(timeouts()).toBe(before);
        for (const timer of timers) timer.refresh();
        expect(timeouts()).toBe(before);
        for (const timer of timers) timer.cancel();
      });
    });

    describe("sleep", () => {
      it("resolves when its time has passed, not before", async () => {
        const slept = clock.sleep(20).then(note("slept"));
        clock.after(10, note("before"));
        clock.after(30, note("later"));
        await pass(40);
        await slept;
        expect(ran).toEqual(["before", "slept", "later"]);
      });

      it("rejects with the signal's reason when that aborts first", async () => {
        const reason = new Error("enough");
        const controller = new AbortController();
        const sleeping = clock.sleep(HOUR_MS, controller.signal);
        controller.abort(reason);
        await expect(sleeping).rejects.toBe(reason);
        await expect(clock.sleep(HOUR_MS, controller.signal)).rejects.toBe(reason);
      });

      it("resolves under a signal that stays quiet, and forgets it", async () => {
        const controller = new AbortController();
        let listening = 0;
        const { signal } = controller;
        const count =
          (by: number, call: (...given: never[]) => unknown) =>
          (...given: never[]) => {
            listening += by;
            return call.apply(signal, given);
          };
        signal.addEventListener = count(1, signal.addEventListener) as typeof signal.addEventListener;
        signal.removeEventListener = count(-1, signal.removeEventListener) as typeof signal.removeEventListener;
        const sleeping = clock.sleep(5, signal);
        await pass(20);
        await expect(sleeping).resolves.toBeUndefined();
        expect(listening).toBe(0);
      });
    });
  });
}
