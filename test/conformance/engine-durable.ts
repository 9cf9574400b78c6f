import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGate, type EngineUnderTest, found, type OpenEngine, openEngine, settled, untilAborted } from "./engine-subject.ts";

/** How another process meets the store of a first one. */
export interface DurableEngine {
  /**
   * The first process is dead from now on, as far as others can notice, although it stays open here. Returns another process with
   * the same store.
   */
  again(first: EngineUnderTest): EngineUnderTest | Promise<EngineUnderTest>;
}

/** What an engine whose store outlives its process does besides, as vitest tests. */
export function engineDurability(
  make: () => EngineUnderTest | Promise<EngineUnderTest>,
  durable: DurableEngine,
  parkAfterMs?: number,
): void {
  describe("another process", () => {
    let under: EngineUnderTest;
    let first: OpenEngine;
    const opened: OpenEngine[] = [];
    let ran: string[];
    beforeEach(async () => {
      under = await make();
      first = await openEngine(under);
      opened.push(first);
      ran = [];
    });
    afterEach(async () => {
      for (const each of opened.splice(0).reverse()) await each.close();
    });

    type Work = (context: ports.WorkContext, input: Record<string, unknown>) => Promise<unknown>;
    const define = (engine: ports.Engine, work: Work, options: Partial<ports.WorkOptions<object>> = {}) =>
      engine.define("kind", work, { onInterrupted: "resume", ...options });
    /** Another process, after the death of the last one. */
    const next = async (work: Work, options?: Partial<ports.WorkOptions<object>>): Promise<OpenEngine> => {
      under = await durable.again(under);
      const process = await openEngine(under, (engine) => define(engine, work, options));
      opened.push(process);
      await process.engine.ready();
      return process;
    };
    const begin = async (work: Work, options?: Partial<ports.WorkOptions<object>>): Promise<void> => {
      define(first.engine, work, options);
      await first.engine.ready();
    };
    const start = (id: string, options?: ports.StartOptions) => first.engine.start("kind", id, { of: id }, options);
    const forever: Work = async ({ signal }) => untilAborted(signal);

    it("runs what was accepted and had not begun, once, with its input and after its records", async () => {
      await begin(forever, { concurrency: 1 });
      await start("first");
      await start("second", { records: [first.notes.write.put("note", { text: "kept" })] });
      const process = await next(async ({ id, attempt }, input) => void ran.push(`${id} ${attempt} ${JSON.stringify(input)}`));
      expect(await process.ended("second")).toMatchObject({ state: "completed", attempt: 1 });
      await process.ended("first");
      expect(ran.toSorted()).toEqual(['first 2 {"of":"first"}', 'second 1 {"of":"second"}']);
    });

    it("knows what is a duplicate, and what has ended stays ended", async () => {
      await begin(async ({ id }) => void ran.push(id));
      await start("one");
      await first.ended("one");
      const process = await next(async ({ id }) => void ran.push(`${id} again`));
      expect(await process.engine.start("kind", "one", {})).toEqual({ duplicate: true });
      await settled();
      expect(ran).toEqual(["one"]);
      expect(await process.engine.status("one")).toMatchObject({ state: "completed", attempt: 1 });
    });

    it("goes on from the last finished step: what was done is not done again", async () => {
      const gate = createGate();
      await begin(async (context) => {
        await context.step("a", async () => ran.push("a"));
        await context.step("b", async () => ran.push("b"));
        await gate.passed;
        await context.step("c", async () => ran.push("c"));
      });
      await start("one");
      await found(() => ran.length === 2);
      await settled();
      const process = await next(async (context) => {
        const answers = [];
        for (const name of ["a", "b", "c"]) answers.push(await context.step(name, async () => ran.push(`${name} again`)));
        return answers;
      });
      expect(await process.ended("one")).toMatchObject({ state: "completed", attempt: 2, output: [1, 2, 3] });
      expect(ran).toEqual(["a", "b", "c again"]);
    });

    it("knows what earlier executions stored, also what this execution does not request", async () => {
      await begin(async (context) => {
        await context.step("a", async () => ({ of: "a" }), { repeatable: true });
        expect(context.earlier()).toEqual([]);
        await context.step("b", (signal) => (ran.push("b"), untilAborted(signal)));
      });
      await start("one");
      await found(() => ran.length);
      expect(await first.engine.signal("one", "word", "said")).toBe(true);
      const process = await next(async (context) => context.branch(async (branch) => branch.earlier()));
      const { output } = await process.ended("one");
      expect(output).toHaveLength(3);
      expect(output).toEqual(
        expect.arrayContaining([
          { kind: "step", name: "a", value: { of: "a" } },
          { kind: "begun", name: "b" },
          { kind: "signal", name: "word", value: "said" },
        ]),
      );
    });

    it("throws again what a finished step threw", async () => {
      await begin(async (context) => {
        await context.step("a", async () => Promise.reject(new RangeError("too far"))).catch(() => ran.push("threw"));
        await untilAborted(context.signal);
      });
      await start("one");
      await found(() => ran.length);
      const process = await next(async (context) =>
        context.step("a", async () => "never").catch(({ name, message }: Error) => `${name}: ${message}`),
      );
      expect(await process.ended("one")).toMatchObject({ state: "completed", output: "RangeError: too far" });
    });

    it("runs a step that had begun again where it is repeatable, and throws StepInterrupted where it is not", async () => {
      await begin(async (context) => {
        const repeatable = { repeatable: true };
        await Promise.all([
          context.step("may", (signal) => (ran.push("may"), untilAborted(signal)), repeatable),
          context.step("may not", (signal) => (ran.push("may not"), untilAborted(signal))),
        ]);
      });
      await start("one");
      await found(() => ran.length === 2);
      const process = await next(async (context) => {
        const may = await context.step("may", async () => "again", { repeatable: true });
        const mayNot = await context.step("may not", async () => "again").catch((error: Error) => error.name);
        return [may, mayNot];
      });
      expect(await process.ended("one")).toMatchObject({ state: "completed", output: ["again", "StepInterrupted"] });
    });

    it("closes what was executing where its kind says so: told once, with its input, and never executed again", async () => {
      const closing: Partial<ports.WorkOptions<object>> = {
        onInterrupted: "close",
        closed: async (id, input) => void ran.push(`closed ${id} ${JSON.stringify(input)}`),
      };
      await begin(async (context) => (ran.push(context.id), untilAborted(context.signal)), { ...closing, concurrency: 1 });
      await start("one");
      await start("two");
      await found(() => ran.length);
      const process = await next(async ({ id }) => void ran.push(`${id} again`), closing);
      expect(await process.ended("one")).toMatchObject({ state: "interrupted", attempt: 1 });
      await process.ended("two");
      expect(ran.toSorted()).toEqual(['closed one {"of":"one"}', "one", "two again"]);
      await next(forever, closing);
      await settled();
      expect(ran.length).toBe(3);
    });

    it("is told of an end again, where it could not be told", async () => {
      const options = (closed: (id: string) => Promise<void>) => ({ onInterrupted: "close" as const, closed });
      await begin(
        async (context) => (ran.push(context.id), untilAborted(context.signal)),
        options(async () => {}),
      );
      await start("one");
      await found(() => ran.length);
      const process = await next(
        forever,
        options(async () => Promise.reject(new Error("not now"))),
      );
      expect(await process.ended("one")).toMatchObject({ state: "interrupted" });
      expect(await process.engine.start("kind", "one", {})).toEqual({ duplicate: true });
      await next(
        forever,
        options(async (id) => void ran.push(`closed ${id}`)),
      );
      await found(() => ran.length === 2);
      expect(ran).toEqual(["one", "closed one"]);
    });

    it("keeps the order of a key", async () => {
      await begin(forever);
      for (const id of ["a", "b", "c", "d"]) await start(id, { key: "k" });
      const process = await next(async ({ id }) => void ran.push(id));
      await process.ended("d");
      expect(ran).toEqual(["a", "b", "c", "d"]);
    });

    it("sleeps only what is left, and waits only as long as is left", async () => {
      await begin(async (context) => {
        ran.push(context.id);
        if (context.id === "sleeps") await context.sleep("s", 1000);
        else await context.waitFor("w", { timeoutMs: 1000 });
      });
      await start("sleeps");
      await start("waits");
      await found(() => ran.length === 2);
      await settled();
      const process = await next(async (context) => {
        if (context.id === "sleeps") await context.sleep("s", 60_000);
        else return (await context.waitFor("w", { timeoutMs: 60_000 })) ?? "nothing";
        return "slept";
      });
      await process.pass(1000);
      expect(await process.ended("sleeps")).toMatchObject({ output: "slept" });
      expect(await process.ended("waits")).toMatchObject({ output: "nothing" });
    });

    it("has the signals that no wait had taken, and those that a dead wait had taken", async () => {
      await begin(async (context) => {
        ran.push(String(await context.waitFor("taken")));
        await untilAborted(context.signal);
      });
      await start("one");
      await first.engine.signal("one", "taken", "t");
      await first.engine.signal("one", "early", "e");
      await found(() => ran.length);
      const process = await next(async (context) => [await context.waitFor("taken"), await context.waitFor("early")]);
      expect(await process.ended("one")).toMatchObject({ output: ["t", "e"] });
    });

    it("knows what was cancelled: what executed is told so, what had not begun never does", async () => {
      await begin(async (context) => (ran.push(context.id), new Promise(() => {})), { concurrency: 1 });
      await start("executes");
      await start("waits");
      await found(() => ran.length);
      expect(await first.engine.cancel("executes", "enough")).toBe(true);
      expect(await first.engine.cancel("waits", "enough")).toBe(true);
      const reasons: unknown[] = [];
      const process = await next(async ({ id, signal }) => {
        ran.push(`${id} again`);
        reasons.push(signal.reason);
      });
      expect(await process.ended("executes")).toMatchObject({ state: "cancelled", error: "enough" });
      expect(await process.engine.status("waits")).toMatchObject({ state: "cancelled", attempt: 0 });
      expect(ran).toEqual(["executes", "executes again"]);
      expect(reasons[0]).toBeInstanceOf(ports.WorkCancelled);
    });

    it("has what was accepted for a kind that it does not define kept for one that does", async () => {
      await begin(forever, { concurrency: 1 });
      await start("one");
      await start("two");
      const other = await openEngine(await durable.again(under), (engine) =>
        engine.define("other", forever, { onInterrupted: "resume" }),
      );
      opened.push(other);
      await other.engine.ready();
      await settled();
      expect(await other.engine.status("two")).toMatchObject({ state: "waiting" });
      const process = await next(async ({ id }) => void ran.push(id));
      await process.ended("two");
      await process.ended("one");
      expect(ran.toSorted()).toEqual(["one", "two"]);
    });

    describe.runIf(parkAfterMs !== undefined)("meets parked work", () => {
      /** Begin with work of one id each that waits, or sleeps for ten times as long as it takes to be parked. */
      const beginParked = async (ids: readonly string[], options?: Partial<ports.WorkOptions<object>>): Promise<void> => {
        await begin(async (context) => {
          await context.step("before", async () => ran.push(`${context.id} before`));
          if (context.id === "sleeps") await context.sleep("nap", parkAfterMs! * 10);
          else await context.waitFor("word");
        }, options);
        for (const id of ids) await start(id);
        await found(() => ran.length === ids.length);
        do {
          await settled();
          await first.pass(parkAfterMs!);
          await settled();
        } while ((await Promise.all(ids.map((id) => first.engine.status(id)))).some((status) => status?.state !== "waiting"));
        ran = [];
      };
      const goOn: Work = async (context) => {
        ran.push(`${context.id} ${context.attempt}`);
        await context.step("before", async () => ran.push("before again"));
        if (context.id === "sleeps") return context.sleep("nap", 0);
        return context.waitFor("word");
      };

      it("and leaves it until what it waits for comes: that was no interruption", async () => {
        await beginParked(["one", "two"]);
        const process = await next(goOn);
        await settled();
        expect(ran).toEqual([]);
        expect(await process.engine.status("one")).toMatchObject({ state: "waiting", attempt: 1 });
        await process.engine.signal("one", "word", "there");
        expect(await process.ended("one")).toMatchObject({ output: "there", attempt: 1 });
        await process.engine.cancel("two", "enough");
        expect(await process.ended("two")).toMatchObject({ state: "cancelled", attempt: 1 });
        expect(ran).toEqual(["one 1", "two 1"]);
      });

      it("and lets it go on when it is due, or has been since", async () => {
        await beginParked(["sleeps"]);
        // Its clock begins where the first one's began.
        const process = await next(goOn);
        await settled();
        expect(ran).toEqual([]);
        await process.pass(parkAfterMs! * 20);
        expect(await process.ended("sleeps")).toMatchObject({ state: "completed", attempt: 1 });
        expect(ran).toEqual(["sleeps 1"]);
      });

      it("that had come back and had not begun, and executes it", async () => {
        await beginParked(["one"]);
        await first.engine.drain(0);
        await first.engine.signal("one", "word", "there");
        const process = await next(goOn);
        expect(await process.ended("one")).toMatchObject({ output: "there", attempt: 1 });
      });

      it("that was executing again, and counts the interruption", async () => {
        const gate = createGate();
        await begin(async (context) => {
          await context.waitFor("word");
          ran.push(context.id);
          await gate.passed;
        });
        await start("one");
        do {
          await settled();
          await first.pass(parkAfterMs!);
          await settled();
        } while ((await first.engine.status("one"))?.state !== "waiting");
        await first.engine.signal("one", "word", "there");
        await found(() => ran.length);
        const process = await next(async (context) => [context.attempt, await context.waitFor("word")]);
        expect(await process.ended("one")).toMatchObject({ output: [2, "there"], attempt: 2 });
      });

      it("and closes it where its kind now says so", async () => {
        await beginParked(["one"]);
        const closed = async (id: string): Promise<void> => void ran.push(`closed ${id}`);
        const process = await next(goOn, { onInterrupted: "close", closed });
        expect(await process.ended("one")).toMatchObject({ state: "interrupted" });
        expect(ran).toEqual(["closed one"]);
      });
    });
  });
}
