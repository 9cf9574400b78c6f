import type { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGate, type EngineUnderTest, found, type OpenEngine, openEngine, settled, untilAborted } from "./engine-subject.ts";

const EVERY_MS = 60_000;

/** What an engine does with chores, as vitest tests. */
export function engineChores(make: () => EngineUnderTest | Promise<EngineUnderTest>): void {
  describe("a chore", () => {
    let opened: OpenEngine;
    let engine: ports.Engine;
    let ran: string[];
    beforeEach(async () => {
      opened = await openEngine(await make());
      engine = opened.engine;
      ran = [];
    });
    afterEach(() => opened.close());

    const pass = async (ms: number): Promise<void> => {
      await settled();
      await opened.pass(ms);
      await settled();
    };

    it("runs when the engine is ready, and again in its interval after each run", async () => {
      engine.chore("sweep", { everyMs: EVERY_MS }, async () => void ran.push("sweep"));
      await engine.ready();
      await found(() => ran.length === 1);
      await pass(EVERY_MS - 1);
      expect(ran).toHaveLength(1);
      for (const times of [2, 3, 4]) {
        await pass(times === 2 ? 1 : EVERY_MS);
        await found(() => ran.length >= times);
        expect(ran).toHaveLength(times);
      }
    });

    it("runs for the first time when its first time has passed", async () => {
      engine.chore("sweep", { everyMs: EVERY_MS, firstMs: 1000 }, async () => void ran.push("sweep"));
      await engine.ready();
      await pass(999);
      expect(ran).toEqual([]);
      await pass(1);
      await found(() => ran.length);
    });

    it("does not delay `ready`, and never runs beside itself", async () => {
      const gate = createGate();
      engine.chore("sweep", { everyMs: EVERY_MS }, async () => {
        ran.push("begins");
        await gate.passed;
        ran.push("ends");
      });
      await engine.ready();
      await found(() => ran.length);
      await pass(EVERY_MS * 3);
      expect(ran).toEqual(["begins"]);
      gate.open();
      await found(() => ran.length === 2);
      await pass(EVERY_MS);
      await found(() => ran.length === 4);
      expect(ran).toEqual(["begins", "ends", "begins", "ends"]);
    });

    it("that fails runs again at its next time, and others run meanwhile", async () => {
      engine.chore("fails", { everyMs: EVERY_MS }, async () => {
        ran.push("fails");
        throw new Error("on purpose");
      });
      engine.chore("throws", { everyMs: EVERY_MS }, () => {
        ran.push("throws");
        throw new Error("on purpose");
      });
      engine.chore("works", { everyMs: EVERY_MS }, async () => void ran.push("works"));
      await engine.ready();
      await found(() => ran.length === 3);
      await pass(EVERY_MS);
      await found(() => ran.length === 6);
      expect(ran.toSorted()).toEqual(["fails", "fails", "throws", "throws", "works", "works"]);
    });

    it.each<[string, () => Promise<void>]>([
      ["drained", () => engine.drain(EVERY_MS)],
      ["closed", () => opened.close()],
    ])("is aborted when the engine is %s, which waits for its end, and runs no more", async (_what, stop) => {
      engine.chore("sweep", { everyMs: EVERY_MS }, async (signal) => {
        ran.push("begins");
        await untilAborted(signal).catch(() => {});
        await settled();
        ran.push("ends");
      });
      await engine.ready();
      await found(() => ran.length);
      await stop();
      expect(ran).toEqual(["begins", "ends"]);
      await pass(EVERY_MS * 2);
      expect(ran).toEqual(["begins", "ends"]);
    });

    it("is defined once per name, before the engine is ready, with times in milliseconds", async () => {
      const nothing = async (): Promise<void> => {};
      engine.chore("sweep", { everyMs: EVERY_MS }, nothing);
      expect(() => engine.chore("sweep", { everyMs: EVERY_MS }, nothing)).toThrow(TypeError);
      expect(() => engine.chore("", { everyMs: EVERY_MS }, nothing)).toThrow(TypeError);
      for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
        expect(() => engine.chore("other", { everyMs: ms }, nothing)).toThrow(RangeError);
        expect(() => engine.chore("other", { everyMs: EVERY_MS, firstMs: ms }, nothing)).toThrow(RangeError);
      }
      expect(() => engine.chore("other", { everyMs: 0 }, nothing)).toThrow(RangeError);
      await engine.ready();
      expect(() => engine.chore("late", { everyMs: EVERY_MS }, nothing)).toThrow(TypeError);
    });
  });
}
