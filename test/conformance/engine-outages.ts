import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createGate,
  type EngineUnderTest,
  found,
  type OpenEngine,
  openEngine,
  type Outage,
  settled,
  untilAborted,
} from "./engine-subject.ts";

/** Longer than an engine waits between two attempts. */
const PAUSE_MS = 5000;

type Work = (context: ports.WorkContext) => Promise<unknown>;

/** What an engine does with work that executes while its store is out of reach, as vitest tests. `make` gives engines with an `outage`. */
export function engineOutages(make: () => EngineUnderTest | Promise<EngineUnderTest>): void {
  describe("work that executes while the store is out of reach", () => {
    let opened: OpenEngine;
    let outage: Outage;
    let engine: ports.Engine;
    let said: string[];
    let away: ReturnType<typeof createGate>;
    beforeEach(async () => {
      const under = await make();
      opened = await openEngine(under);
      if (!under.outage) throw new Error("What has no outage cannot be tested in one");
      outage = under.outage;
      engine = opened.engine;
      said = [];
      away = createGate();
    });
    afterEach(async () => {
      outage.end();
      await opened.close();
    });

    /** Begin a work, and put the store out of reach once it executes. */
    const begin = async (work: Work): Promise<void> => {
      const kind: Work = async (context) => {
        said.push("begun");
        await away.passed;
        return work(context);
      };
      engine.define("kind", kind, { onInterrupted: "resume" });
      await engine.ready();
      await engine.start("kind", "one", {});
      await found(() => said.length > 0);
      outage.begin();
      away.open();
    };
    /** Let more time pass than any limit of the works, and some for what is not to happen. */
    const wait = async (): Promise<void> => {
      await settled();
      await opened.pass(PAUSE_MS);
      await settled();
    };

    it("is refused again, and continues when the store is back", async () => {
      await begin(async ({ step }) => step("say", async () => "said"));
      await expect(engine.start("kind", "two", {})).rejects.toThrow(ports.EngineUnavailable);
      await expect(engine.signal("one", "word", {})).rejects.toThrow(ports.EngineUnavailable);
      outage.end();
      await opened.pass(PAUSE_MS);
      expect(await opened.ended("one")).toMatchObject({ state: "completed", output: "said" });
    });

    it.each([false, true])("begins a step when that is written down, and runs it once (repeatable: %s)", async (repeatable) => {
      await begin(async (context) => {
        const say = async (): Promise<string> => `step ${said.push("step")}`;
        return context.step("say", say, { repeatable });
      });
      await wait();
      // One that may be repeated needs no mark.
      expect(said).toEqual(repeatable ? ["begun", "step"] : ["begun"]);
      outage.end();
      await opened.pass(PAUSE_MS);
      expect(await opened.ended("one")).toMatchObject({ state: "completed", attempt: 1, output: "step 2" });
      expect(said).toEqual(["begun", "step"]);
    });

    it("sleeps, and waits with a limit, from when it asked for it", async () => {
      await begin(async (context) => {
        await Promise.all([context.sleep("nap", 1), context.waitFor("word", { timeoutMs: 1 })]);
        said.push("awake");
      });
      await wait();
      expect(said).toEqual(["begun"]);
      outage.end();
      await opened.pass(PAUSE_MS);
      expect((await opened.ended("one")).state).toBe("completed");
      expect(said).toEqual(["begun", "awake"]);
    });

    it("ends when it is stopped, without the step", async () => {
      const failed = createGate();
      let thrown: unknown;
      await begin(async (context) => {
        thrown = await context.step("say", async () => said.push("step")).catch((error: unknown) => error);
        failed.open();
        return untilAborted(context.signal);
      });
      await wait();
      const drained = engine.drain(1);
      await opened.pass(1);
      await drained;
      await failed.passed;
      expect(thrown).toBeInstanceOf(ports.EngineStopped);
      expect(said).toEqual(["begun"]);
    });
  });
}
