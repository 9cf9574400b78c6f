import { setImmediate as nextTurn } from "node:timers/promises";
import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { engineChores } from "./engine-chores.ts";
import { type DurableEngine, engineDurability } from "./engine-durable.ts";
import { engineOutages } from "./engine-outages.ts";
import { engineParking } from "./engine-parking.ts";
import { createGate, type EngineUnderTest, found, type OpenEngine, openEngine, settled, untilAborted } from "./engine-subject.ts";

export type { DurableEngine } from "./engine-durable.ts";
export type { EngineUnderTest } from "./engine-subject.ts";

/** Options of `engineConformance`. */
export interface EngineConformanceOptions {
  /** How further processes meet the same store: then durability and recovery are tested too. */
  readonly durable?: DurableEngine;
  /** After how many milliseconds of `pass` work that only waits is parked: then that is tested too. */
  readonly parkAfterMs?: number;
  /** Whether what `make` gives has an `outage`: then work that executes while the store is out of reach is tested too. */
  readonly outages?: boolean;
  /** How many works wait in the tests of long queues: more than the engine holds in memory at once. Default: 700. */
  readonly backlog?: number;
}

const HOUR_MS = 3_600_000;
/** More waiting work than an engine should hold in memory at once. */
const BACKLOG = 700;

/**
 * The law that every engine keeps, as vitest tests. `make` is called once per test and gives an engine with a new, empty store. No
 * test measures a duration. Engines for a single process also keep `singleProcessEngineConformance`.
 */
export function engineConformance(
  name: string,
  make: () => EngineUnderTest | Promise<EngineUnderTest>,
  { durable, parkAfterMs, outages = false, backlog = BACKLOG }: EngineConformanceOptions = {},
): void {
  describeSuite(`engine port: ${name}`, () => {
    let opened: OpenEngine;
    let engine: ports.Engine;
    let ran: string[];
    beforeEach(async () => {
      opened = await openEngine(await make());
      engine = opened.engine;
      ran = [];
    });
    afterEach(() => opened.close());

    const resume = { onInterrupted: "resume" } as const;
    /** Define one kind and be ready. */
    const ready = async (
      work: (context: ports.WorkContext, input: Record<string, unknown>) => Promise<unknown>,
      options: Partial<ports.WorkOptions<object>> = {},
    ): Promise<void> => {
      engine.define("kind", work, { ...resume, ...options });
      await engine.ready();
    };
    /** A kind whose work notes that it began, and ends when the answer is called with its id. */
    const gated = async (options: Partial<ports.WorkOptions<object>> = {}): Promise<(id: string) => Promise<void>> => {
      const gates = new Map<string, ReturnType<typeof createGate>>();
      await ready(async (context) => {
        const gate = createGate();
        gates.set(context.id, gate);
        ran.push(context.id);
        await gate.passed;
      }, options);
      return async (id) => {
        (await found(() => gates.get(id))).open();
        await opened.ended(id);
      };
    };
    const start = (id: string, options?: ports.StartOptions) => engine.start("kind", id, {}, options);

    describe("accepted work", () => {
      it("runs once, with its input, and its answer is kept as JSON keeps it", async () => {
        const at = new Date(0);
        await ready(async (context, input) => {
          ran.push(`${context.id} ${context.attempt}`);
          return { got: input, at, gone: undefined };
        });
        const text = 'é \u{1f680} \n " \\ \0 \ud800';
        expect(await engine.start("kind", "one", { text, list: [1, null], at })).toEqual({ duplicate: false });
        const status = await opened.ended("one");
        const kept = at.toISOString();
        expect(status).toMatchObject({ kind: "kind", state: "completed", attempt: 1 });
        expect(status.output).toStrictEqual({ got: { text, list: [1, null], at: kept }, at: kept });
        expect(ran).toEqual(["one 1"]);
      });

      it("may take the functions out of its context", async () => {
        await ready(async ({ step, sleep, waitFor }) => {
          await sleep("nap", 0);
          return [await step("first", async () => "done"), await waitFor("word")];
        });
        await start("one");
        await engine.signal("one", "word", "said");
        await opened.pass(1);
        expect((await opened.ended("one")).output).toEqual(["done", "said"]);
      });

      it("is taken as it was when start was called", async () => {
        await ready(async (_context, input) => input);
        const input = { nested: { at: 1 } };
        const accepted = engine.start("kind", "one", input);
        input.nested.at = 2;
        await accepted;
        expect((await opened.ended("one")).output).toEqual({ nested: { at: 1 } });
      });

      it("says whether it waits, executes or has ended, and when", async () => {
        const end = await gated();
        await Promise.all([start("one", { key: "k" }), start("two", { key: "k" })]);
        await found(() => ran.length);
        const executing = await engine.status("one");
        expect(executing).toMatchObject({ state: "executing", attempt: 1 });
        expect(executing?.endedAt).toBeUndefined();
        expect(await engine.status("two")).toMatchObject({ kind: "kind", state: "waiting", attempt: 0 });
        expect(executing?.acceptedAt).toBeGreaterThan(Date.UTC(2020));
        await opened.pass(1000);
        await end("one");
        const { acceptedAt, endedAt } = await opened.ended("one");
        expect(Number(endedAt) - acceptedAt).toBeGreaterThanOrEqual(1000);
        expect(await engine.status("none")).toBeUndefined();
        await end("two");
      });

      it("says which process executes it, as long as one does", async () => {
        const end = await gated();
        await Promise.all([start("one", { key: "k" }), start("two", { key: "k" })]);
        await found(() => ran.length);
        expect(engine.process).not.toBe("");
        expect((await engine.status("one"))?.process).toBe(engine.process);
        expect((await engine.status("two"))?.process).toBeUndefined();
        await end("one");
        expect((await opened.ended("one")).process).toBeUndefined();
        await end("two");
      });

      it("is the same work when the id comes again, with any input and kind, also after its end", async () => {
        engine.define("other", async () => ran.push("other"), resume);
        const end = await gated();
        await start("one");
        const again = async () => [await engine.start("kind", "one", { other: true }), await engine.start("other", "one", {})];
        expect(await again()).toEqual([{ duplicate: true }, { duplicate: true }]);
        await end("one");
        expect(await again()).toEqual([{ duplicate: true }, { duplicate: true }]);
        await settled();
        expect(ran).toEqual(["one"]);
      });

      it("is one work when 100 starts of one id come at once", async () => {
        await ready(async (context) => ran.push(context.id));
        const starts = await Promise.all(Array.from({ length: 100 }, () => start("one")));
        expect(starts.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
        await opened.ended("one");
        await settled();
        expect(ran).toEqual(["one"]);
      });

      it("needs a kind that is defined, and an input that is a JSON object", async () => {
        await ready(async () => {});
        await expect(engine.start("undefined", "one", {})).rejects.toThrow(TypeError);
        const circle: Record<string, unknown> = {};
        circle["it"] = circle;
        for (const input of [[], "text", null, () => 1, { big: 1n }, circle, { toJSON: () => [] }]) {
          await expect(engine.start("kind", "one", input as object)).rejects.toThrow(TypeError);
        }
        expect(await engine.status("one")).toBeUndefined();
      });

      it.each(["", "x".repeat(513), "a\0", "\ud800"])("has no id, key or name like %j", async (bad) => {
        await ready(async (context) => context.step(bad, async () => 1));
        await expect(start(bad)).rejects.toThrow(TypeError);
        await expect(start("one", { key: bad })).rejects.toThrow(TypeError);
        await expect(engine.signal("one", bad, {})).rejects.toThrow(TypeError);
        await start("two");
        expect((await opened.ended("two")).error).toMatch(/^TypeError: /);
      });

      it.each(["a b", "../a", "'; --", '"', "%_*?", "x".repeat(512), "é\u{1f680}", "__proto__"])(
        "may be called %j",
        async (id) => {
          await ready(async (context) => context.step(id, async () => context.waitFor(id)));
          await start(id, { key: id });
          expect(await engine.signal(id, id, id)).toBe(true);
          expect(await opened.ended(id)).toMatchObject({ state: "completed", output: id });
        },
      );
    });

    describe("the engine itself", () => {
      it("accepts nothing before it is ready, nor after it is closed", async () => {
        engine.define("kind", async () => {}, resume);
        const refused = { name: "EngineUnavailable" };
        await expect(start("one")).rejects.toMatchObject(refused);
        await engine.ready();
        await start("one");
        await opened.close();
        await expect(start("two")).rejects.toMatchObject(refused);
        await expect(engine.signal("one", "name", {})).rejects.toMatchObject(refused);
        await expect(engine.cancel("one", "why")).rejects.toMatchObject(refused);
      });

      it("takes each definition once, before it is ready", async () => {
        engine.define("kind", async () => {}, resume);
        expect(() => engine.define("kind", async () => {}, resume)).toThrow(TypeError);
        for (const limit of [0, -1, 1.5, Number.NaN]) {
          expect(() => engine.define("other", async () => {}, { ...resume, concurrency: limit })).toThrow(TypeError);
          expect(() => engine.define("other", async () => {}, { ...resume, concurrencyPerKey: limit })).toThrow(TypeError);
        }
        await engine.ready();
        expect(() => engine.define("late", async () => {}, resume)).toThrow(TypeError);
        // Each plugin that defined a kind says it.
        await expect(engine.ready()).resolves.toBeUndefined();
      });
    });

    describe("work that throws", () => {
      class TeapotError extends Error {
        override readonly name = "TeapotError";
      }
      it.each<[string, () => unknown, string]>([
        ["an error", () => new TeapotError("short and stout"), "TeapotError: short and stout"],
        ["a text", () => "a text", "Error: a text"],
        ["nothing", () => undefined, "Error: undefined"],
        ["what cannot be described", () => Object.create(null), "Error: The thrown value cannot be described"],
      ])("ends as failed, with name and message of %s", async (_what, makeThrown, error) => {
        await ready(async () => {
          throw makeThrown();
        });
        await start("one");
        expect(await opened.ended("one")).toMatchObject({ state: "failed", error });
      });

      it("also fails if it throws synchronously or answers a value that is not JSON", async () => {
        await ready((_context, input) => {
          if (input["now"]) throw new Error("at once");
          return Promise.resolve(1n);
        });
        await engine.start("kind", "one", { now: true });
        await engine.start("kind", "two", {});
        expect(await opened.ended("one")).toMatchObject({ state: "failed", error: "Error: at once" });
        expect((await opened.ended("two")).error).toMatch(/^TypeError: /);
      });

      it("blocks no other work, not even of its own key", async () => {
        await ready(async (context) => {
          if (context.id !== "last") throw new Error("no");
        });
        await Promise.all(["one", "two", "last"].map((id) => start(id, { key: "k" })));
        expect(await opened.ended("last")).toMatchObject({ state: "completed" });
      });

      it("ends no process by what it leaves behind", async () => {
        const unhandled: unknown[] = [];
        const note = (error: unknown): void => void unhandled.push(error);
        process.on("unhandledRejection", note);
        const gate = createGate();
        await ready(async (context) => {
          void context.step("left", () => gate.passed.then(() => Promise.reject(new Error("left"))));
          void context.sleep("long", HOUR_MS);
          void context.waitFor("never");
          void context.step("left", async () => 1);
          await context.step("awaited", async () => 1);
        });
        await start("one");
        expect((await opened.ended("one")).state).toBe("completed");
        gate.open();
        await settled();
        process.off("unhandledRejection", note);
        expect(unhandled).toEqual([]);
      });

      it("can do nothing more once it has ended", async () => {
        let late: ports.WorkContext | undefined;
        await ready(async (context) => {
          late = context;
        });
        await start("one");
        await opened.ended("one");
        await expect(late?.step("late", async () => ran.push("late"))).rejects.toThrow(TypeError);
        await expect(late?.sleep("late", 0)).rejects.toThrow(TypeError);
        await expect(late?.waitFor("late")).rejects.toThrow(TypeError);
        expect(ran).toEqual([]);
      });
    });

    describe("order", () => {
      it("work of one key executes one after another, in the order of its acceptance", async () => {
        const end = await gated();
        const ids = ["c", "a", "b"];
        await Promise.all(ids.map((id) => start(id, { key: "k" })));
        for (const [at, id] of ids.entries()) {
          await found(() => ran.includes(id));
          await settled();
          expect(ran).toEqual(ids.slice(0, at + 1));
          await end(id);
        }
      });

      it("work of different keys executes side by side, as much as its kind may", async () => {
        const end = await gated({ concurrency: 3 });
        const ids = ["e", "d", "c", "b", "a"];
        await Promise.all(ids.map((id) => start(id)));
        for (let ended = 0; ended < ids.length; ended++) {
          const begun = Math.min(ids.length, ended + 3);
          await found(() => ran.length >= begun);
          await settled();
          expect(ran).toHaveLength(begun);
          await end(ran[ended]!);
        }
        expect(ran.toSorted()).toEqual(ids.toSorted());
      });

      it("a key has as many executing as its kind says", async () => {
        const end = await gated({ concurrencyPerKey: 2 });
        await Promise.all(["a", "b", "c", "d"].map((id) => start(id, { key: "k" })));
        await found(() => ran.length === 2);
        await settled();
        expect(ran).toEqual(["a", "b"]);
        await end("b");
        await found(() => ran.length === 3);
        expect(ran).toEqual(["a", "b", "c"]);
        for (const id of ["a", "c", "d"]) await end(id);
      });

      it("a work's own id is its key", async () => {
        const end = await gated();
        await start("one");
        await start("two", { key: "one" });
        await found(() => ran.length);
        await settled();
        expect(ran).toEqual(["one"]);
        await end("one");
        await end("two");
      });

      it("keys take turns: a key with much waiting work does not delay others until its end", async () => {
        const end = await gated({ concurrency: 1 });
        const busy = Array.from({ length: 20 }, (_, at) => `busy-${at}`);
        await Promise.all(busy.map((id) => start(id, { key: "busy" })));
        await Promise.all(["a", "b"].map((id) => start(id, { key: id })));
        for (let ended = 0; ended < busy.length + 2; ended++) await end(await found(() => ran[ended]));
        expect(ran.filter((id) => id.startsWith("busy"))).toEqual(busy);
        for (const id of ["a", "b"]) expect(ran.indexOf(id)).toBeLessThan(5);
      });

      it("kinds share no limits and no keys", async () => {
        engine.define("other", async () => ran.push("other"), { ...resume, concurrency: 1 });
        const end = await gated({ concurrency: 1 });
        await start("one", { key: "k" });
        await engine.start("other", "two", {}, { key: "k" });
        await opened.ended("two");
        await end("one");
      });

      it("a long queue of one key is executed in its order, also while more work is accepted", async () => {
        const gate = createGate();
        await ready(
          async (context) => {
            await gate.passed;
            ran.push(context.id);
          },
          { concurrency: 1 },
        );
        const ids = Array.from({ length: backlog }, (_, at) => `work-${at}`);
        await Promise.all(ids.slice(0, -backlog / 7).map((id) => start(id, { key: "k" })));
        gate.open();
        await Promise.all(ids.slice(-backlog / 7).map((id) => start(id, { key: "k" })));
        await opened.ended(ids.at(-1)!);
        expect(ran).toEqual(ids);
      });

      it("a long queue of many keys is executed completely, each work once", async () => {
        await ready(async (context) => ran.push(context.id), { concurrency: 8 });
        const ids = Array.from({ length: backlog }, (_, at) => `work-${at}`);
        await Promise.all(ids.map((id) => start(id)));
        await found(() => ran.length >= ids.length);
        await settled();
        expect(ran.toSorted()).toEqual(ids.toSorted());
      });
    });

    describe("records", () => {
      const put = (id: string, text: string, expected?: ports.Expected) => opened.notes.write.put(id, { text }, expected);
      const textOf = async (id: string) => (await opened.notes.get(id))?.value.text;

      it("are written with the acceptance, before the work begins", async () => {
        await ready(async () => textOf("one"));
        await start("one", { records: [put("one", "first"), put("two", "second")] });
        expect((await opened.ended("one")).output).toBe("first");
        expect(await textOf("two")).toBe("second");
      });

      it("keep the work from being accepted when they conflict, and none is written", async () => {
        await ready(async (context) => ran.push(context.id));
        await opened.notes.put("taken", { text: "before" });
        const records = [put("one", "first"), put("taken", "after", "absent")];
        await expect(start("one", { records })).rejects.toMatchObject({ name: "RecordConflict", id: "taken" });
        expect(await engine.status("one")).toBeUndefined();
        expect(await textOf("one")).toBeUndefined();
        expect(await textOf("taken")).toBe("before");
        await expect(start("one", { records: [put("", "bad")] })).rejects.toThrow(TypeError);
        expect(await engine.status("one")).toBeUndefined();
        await settled();
        expect(ran).toEqual([]);
        expect(await start("one", { records: [put("one", "first")] })).toEqual({ duplicate: false });
        await opened.ended("one");
      });

      it("of a conflicting start do not disturb the starts beside it", async () => {
        await ready(async () => {});
        await opened.notes.put("taken", { text: "before" });
        const starts = Array.from({ length: 20 }, (_, at) => {
          const records = [at % 2 ? put("taken", "after", "absent") : put(`note-${at}`, "t", "absent")];
          return start(`work-${at}`, { key: "k", records });
        });
        const outcomes = await Promise.allSettled(starts);
        expect(outcomes.map((outcome) => outcome.status)).toEqual(starts.map((_, at) => (at % 2 ? "rejected" : "fulfilled")));
        await opened.ended("work-18");
        for (const [at] of starts.entries()) expect(await textOf(`note-${at}`)).toBe(at % 2 ? undefined : "t");
      });

      it("of a duplicate are not written, in 100 identical starts at once either", async () => {
        await ready(async () => {});
        const starts = Array.from({ length: 100 }, (_, at) => start("one", { records: [put("one", `start ${at}`)] }));
        const firsts = (await Promise.all(starts)).flatMap(({ duplicate }, at) => (duplicate ? [] : [at]));
        expect(firsts).toHaveLength(1);
        expect(await textOf("one")).toBe(`start ${firsts[0]}`);
        await opened.ended("one");
        await start("one", { records: [put("one", "late")] });
        expect(await textOf("one")).toBe(`start ${firsts[0]}`);
      });
    });

    describe("the condition `held`", () => {
      it("lets batches of executing work be written, as often as it likes, and changes nothing", async () => {
        await ready(async ({ held, step }) => {
          for (const text of ["first", "second"]) {
            await step(text, () => opened.batch([held, opened.notes.write.put("one", { text })]), { repeatable: true });
          }
          await opened.batch([held]);
        });
        await start("one");
        expect(await opened.ended("one")).toMatchObject({ state: "completed" });
        expect((await opened.notes.get("one"))?.value.text).toBe("second");
        expect((await opened.notes.query()).items).toHaveLength(1);
      });

      it("lets cancelled work write its end", async () => {
        await ready(async ({ held, signal, id }) => {
          ran.push(id);
          await untilAborted(signal).catch(() => {});
          await opened.batch([held, opened.notes.write.put("one", { text: "cancelled" })]);
          ran.push("written");
        });
        await start("one");
        await found(() => ran.length);
        await engine.cancel("one", "enough");
        await opened.ended("one");
        expect(ran).toEqual(["one", "written"]);
      });

      it("refuses batches of work that has ended, and none of the batch is written", async () => {
        let late: ports.Write | undefined;
        await ready(async ({ held }) => {
          late = held;
        });
        await start("one");
        await opened.ended("one");
        const batch = opened.batch([opened.notes.write.put("one", { text: "late" }), late!]);
        await expect(batch).rejects.toBeInstanceOf(ports.RecordConflict);
        expect(await opened.notes.get("one")).toBeUndefined();
      });
    });

    describe("`endWith`", () => {
      const put = (text: string) => opened.notes.write.put("one", { text });

      it("ends the work with a batch of records, and the next work of its key begins", async () => {
        await ready(async ({ endWith, id, step }) => {
          ran.push(id);
          await step("a step", async () => 1);
          return endWith(async (ended) => {
            await opened.batch([put(`end of ${id}`), ended]);
            return "no result";
          });
        });
        await start("one", { key: "key" });
        await start("two", { key: "key" });
        const status = await opened.ended("two");
        expect([status.state, status.output, status.error]).toEqual(["completed", undefined, undefined]);
        expect((await engine.status("one"))?.state).toBe("completed");
        expect((await opened.notes.get("one"))?.value.text).toBe("end of two");
        expect(ran).toEqual(["one", "two"]);
      });

      it("ends the work also with a batch of the condition alone, and ignores what the function does afterwards", async () => {
        await ready(async ({ endWith, step }) => {
          await endWith((ended) => opened.batch([ended]));
          await step("late", async () => 1).catch(() => {});
          throw new Error("too late");
        });
        await start("one");
        expect((await opened.ended("one")).state).toBe("completed");
      });

      it("goes on with the work if the batch conflicts, and none of it is written", async () => {
        await ready(async ({ endWith, held }) => {
          const conflicting = opened.notes.write.put("two", { text: "not there" }, 1);
          const refused = await endWith((ended) => opened.batch([put("lost"), ended, conflicting])).catch(
            (error: Error) => error,
          );
          expect(refused).toBeInstanceOf(ports.RecordConflict);
          await opened.batch([held]);
          return "went on";
        });
        await start("one", { key: "key" });
        await start("two", { key: "key" });
        expect(await opened.ended("one")).toMatchObject({ state: "completed", output: "went on" });
        expect((await opened.ended("two")).output).toBe("went on");
        expect(await opened.notes.get("one")).toBeUndefined();
      });

      it("leaves cancelled work cancelled", async () => {
        await ready(async ({ endWith, signal, id }) => {
          ran.push(id);
          await untilAborted(signal).catch(() => {});
          await endWith((ended) => opened.batch([put("cancelled"), ended]));
        });
        await start("one");
        await found(() => ran.length);
        await engine.cancel("one", "enough");
        expect(await opened.ended("one")).toMatchObject({ state: "cancelled", error: "enough" });
        expect((await opened.notes.get("one"))?.value.text).toBe("cancelled");
      });

      it("refuses the batch of work that has ended", async () => {
        let endLate: ports.WorkContext["endWith"] | undefined;
        await ready(async ({ endWith }) => void (endLate = endWith));
        await start("one");
        await opened.ended("one");
        const late = endLate!((ended) => opened.batch([put("late"), ended]));
        await expect(late).rejects.toBeInstanceOf(ports.RecordConflict);
        expect(await opened.notes.get("one")).toBeUndefined();
      });
    });

    describe("steps", () => {
      it("run, and are answered as JSON keeps them", async () => {
        await ready(async (context) => {
          const date: unknown = await context.step("date", async () => new Date(0));
          const nothing = await context.step("nothing", async () => undefined);
          return [typeof date, date, nothing === undefined, await context.step("again", async () => [1], { repeatable: true })];
        });
        await start("one");
        expect((await opened.ended("one")).output).toEqual(["string", "1970-01-01T00:00:00.000Z", true, [1]]);
      });

      it("throw what they threw, and the work may go on", async () => {
        const thrown = new RangeError("out of range");
        await ready(async (context) => {
          const caught: unknown = await context.step("throws", () => Promise.reject(thrown)).catch((error: unknown) => error);
          return context.step("goes on", async () => caught === thrown);
        });
        await start("one");
        expect(await opened.ended("one")).toMatchObject({ state: "completed", output: true });
      });

      it("have a name each, and answer JSON", async () => {
        await ready(async (context, { again, big }) => {
          await context.step("name", async () => (big ? 1n : 1));
          if (again === "step") await context.step("name", async () => ran.push("twice"));
          await context.sleep("name", 0);
          if (again === "sleep") await context.sleep("name", 0);
        });
        for (const [id, input] of Object.entries({ step: { again: "step" }, sleep: { again: "sleep" }, big: { big: true } })) {
          await engine.start("kind", id, input);
          expect((await opened.ended(id)).error).toMatch(/^TypeError: /);
        }
        await start("once");
        expect(await opened.ended("once")).toMatchObject({ state: "completed" });
        expect(ran).toEqual([]);
      });

      it("run side by side where the work wants it", async () => {
        const both = createGate();
        await ready(async (context) => {
          const step = (name: string) =>
            context.step(name, async () => {
              if (ran.push(name) === 2) both.open();
              await both.passed;
              return name;
            });
          return Promise.all([step("a"), step("b")]);
        });
        await start("one");
        expect((await opened.ended("one")).output).toEqual(["a", "b"]);
      });
    });

    describe("sleep", () => {
      it("ends when its time has passed, not before, and a shorter sleep ends earlier", async () => {
        await ready(async (context, { ms }) => {
          await context.sleep("nap", Number(ms));
          ran.push(context.id);
        });
        // Neither in their order nor against it, and more than one.
        const naps = [50, 20, 80, 10, 70, 30, 90, 40, 60].map((seconds) => [`nap-${seconds}`, seconds * 1000] as const);
        for (const [id, ms] of [...naps, ["none", 0], ["past", -5]] as const) await engine.start("kind", id, { ms });
        await Promise.all(["none", "past"].map((id) => opened.ended(id)));
        await settled();
        await opened.pass(9000);
        await settled();
        expect([...ran].sort()).toEqual(["none", "past"]);
        for (const seconds of [10, 20, 30, 40, 50, 60, 70, 80, 90]) {
          await opened.pass(10_000);
          await opened.ended(`nap-${seconds}`);
          await settled();
          expect(ran.slice(2)).toHaveLength(seconds / 10);
        }
      });

      it("is a finite number of milliseconds", async () => {
        await ready(async (context) => context.sleep("nap", Number.NaN));
        await start("one");
        expect((await opened.ended("one")).error).toMatch(/^RangeError: /);
      });

      it("holds its key, but no place among what executes", async () => {
        await ready(
          async (context) => {
            // What waits for long may be executed again.
            await context.step("begin", async () => ran.push(context.id));
            if (context.id.startsWith("sleeper")) await context.sleep("nap", HOUR_MS);
            ran.push(`${context.id} done`);
          },
          { concurrency: 1 },
        );
        for (const id of ["sleeper-1", "sleeper-2"]) await start(id, { key: id });
        await start("behind", { key: "sleeper-1" });
        await start("beside");
        await opened.ended("beside");
        expect(ran).toEqual(["sleeper-1", "sleeper-2", "beside", "beside done"]);
        await settled();
        await opened.pass(HOUR_MS);
        await opened.ended("behind");
        expect(ran.slice(4).sort()).toEqual(["behind", "behind done", "sleeper-1 done", "sleeper-2 done"]);
      });

      it("is followed by a place of one's own: no more go on at once than the kind may have", async () => {
        const gate = createGate();
        const begun = new Set<string>();
        await ready(
          async (context) => {
            begun.add(context.id);
            await context.sleep("nap", 1000);
            ran.push(context.id);
            await context.step("long", () => gate.passed);
          },
          { concurrency: 2 },
        );
        const ids = ["a", "b", "c", "d", "e"];
        for (const id of ids) await start(id);
        await found(() => begun.size === ids.length);
        await settled();
        await opened.pass(1000);
        await found(() => ran.length === 2);
        await settled();
        expect(ran).toHaveLength(2);
        gate.open();
        await Promise.all(ids.map((id) => opened.ended(id)));
        expect([...ran].sort()).toEqual(ids);
      });
    });

    describe("signals", () => {
      const waiting = () =>
        ready(async (context, { times = 1, timeoutMs }) => {
          const options = timeoutMs === undefined ? {} : { timeoutMs: Number(timeoutMs) };
          const got: unknown[] = [];
          ran.push(context.id);
          for (let at = 0; at < Number(times); at++) got.push((await context.waitFor("word", options)) ?? "none");
          return got;
        });

      it("reach the work that waits", async () => {
        await waiting();
        await start("one");
        await found(() => ran.length);
        await settled();
        expect(await engine.signal("one", "other", "not this one")).toBe(true);
        expect(await engine.signal("one", "word", { said: "yes" })).toBe(true);
        expect((await opened.ended("one")).output).toEqual([{ said: "yes" }]);
      });

      it("that come early are kept, in order, each for one wait", async () => {
        const gate = createGate();
        await ready(async (context) => {
          await gate.passed;
          return [await context.waitFor("word"), await context.waitFor("other"), await context.waitFor("word")];
        });
        await start("one");
        await engine.signal("one", "word", "a");
        await engine.signal("one", "word", "b");
        await engine.signal("one", "other", "c");
        gate.open();
        expect((await opened.ended("one")).output).toEqual(["a", "c", "b"]);
      });

      it("that come before the work began are kept for it", async () => {
        await waiting();
        await engine.start("kind", "first", {}, { key: "k" });
        await engine.start("kind", "second", { times: 3 }, { key: "k" });
        for (const word of ["a", "b", "c"]) expect(await engine.signal("second", "word", word)).toBe(true);
        await engine.signal("first", "word", 1);
        expect((await opened.ended("second")).output).toEqual(["a", "b", "c"]);
      });

      it("that come while the work begins are told once", async () => {
        await waiting();
        const words = ["a", "b", "c", "d"];
        await engine.start("kind", "one", { times: words.length });
        for (const word of words) await engine.signal("one", "word", word);
        expect((await opened.ended("one")).output).toEqual(words);
      });

      it("that come while the work is being accepted are told once", async () => {
        await ready(async (context) => {
          const words: unknown[] = [];
          for (;;) {
            const word = await context.waitFor("word");
            if (word === "last") return words;
            words.push(word);
          }
        });
        const accepted = start("one");
        const sent = await during(accepted, (time) => engine.signal("one", "word", time));
        const kept = (await Promise.all(sent)).flatMap((isKept, time) => (isKept ? [time] : []));
        await engine.signal("one", "word", "last");
        expect((await opened.ended("one")).output).toEqual(kept);
      });

      it("come to each of several waits in their order, told at once or one by one", async () => {
        await waiting();
        await engine.start("kind", "one", { times: 4 });
        await found(() => ran.length);
        await Promise.all(["a", "b"].map((word) => engine.signal("one", "word", word)));
        await settled();
        await engine.signal("one", "word", "c");
        await settled();
        await engine.signal("one", "word", "d");
        expect((await opened.ended("one")).output).toEqual(["a", "b", "c", "d"]);
      });

      it("are not waited for longer than the limit; one that comes later goes to the next wait", async () => {
        await waiting();
        await engine.start("kind", "one", { times: 2, timeoutMs: 1000 });
        await found(() => ran.length);
        await settled();
        await opened.pass(1000);
        await settled();
        await engine.signal("one", "word", "late");
        expect((await opened.ended("one")).output).toEqual(["none", "late"]);
      });

      it("without a payload are told from none", async () => {
        await ready(async (context) => (await context.waitFor("word")) === null);
        await start("one");
        await engine.signal("one", "word", undefined);
        expect((await opened.ended("one")).output).toBe(true);
      });

      it("are refused for work that is unknown or has ended, and when they are no JSON", async () => {
        await ready(async () => {});
        expect(await engine.signal("none", "word", 1)).toBe(false);
        await start("one");
        await opened.ended("one");
        expect(await engine.signal("one", "word", 1)).toBe(false);
        await expect(engine.signal("one", "word", 1n)).rejects.toThrow(TypeError);
      });

      it("hold their work's key while it waits, but no place among what executes", async () => {
        await ready(
          async (context) => {
            ran.push(context.id);
            if (context.id.startsWith("waiter")) await context.waitFor("word");
          },
          { concurrency: 1 },
        );
        const waiters = ["waiter-1", "waiter-2", "waiter-3"];
        for (const id of waiters) await start(id);
        await start("behind", { key: "waiter-1" });
        await start("beside");
        await opened.ended("beside");
        expect(ran).toEqual([...waiters, "beside"]);
        await Promise.all(waiters.map((id) => engine.signal(id, "word", 1)));
        for (const id of [...waiters, "behind"]) await opened.ended(id);
      });
    });

    describe("cancel", () => {
      it("of waiting work: it never begins, and the next of its key does", async () => {
        const end = await gated();
        for (const id of ["one", "two", "three"]) await start(id, { key: "k" });
        await found(() => ran.length);
        expect(await engine.cancel("two", "not needed")).toBe(true);
        expect(await engine.status("two")).toMatchObject({ state: "cancelled", error: "not needed", attempt: 0 });
        await end("one");
        await end("three");
        expect(ran).toEqual(["one", "three"]);
      });

      it("at once after the start: it does not begin, or its signal aborts", async () => {
        await ready(async (context) => untilAborted(context.signal));
        await start("one");
        expect(await engine.cancel("one", "at once")).toBe(true);
        expect(await opened.ended("one")).toMatchObject({ state: "cancelled", error: "at once" });
      });

      it("while the work is being accepted: it does not begin, or its signal aborts", async () => {
        await ready(async (context) => untilAborted(context.signal));
        // Asked for once, at each of the moments that there are between two turns of the event loop, before the acceptance and around it.
        const cancelled = await Promise.all(
          Array.from({ length: 60 }, async (_, hops) => {
            const id = `work-${hops}`;
            const accepted = start(id);
            if (hops >= 30) await nextTurn();
            for (let hop = 0; hop < hops % 30; hop++) await undefined;
            const isOpen = await engine.cancel(id, "at once");
            await accepted;
            // It was not there yet.
            if (!isOpen) await engine.cancel(id, "at once");
            return opened.ended(id);
          }),
        );
        expect(new Set(cancelled.map(({ state }) => state))).toEqual(new Set(["cancelled"]));
      });

      it.each<[string, (context: ports.WorkContext) => Promise<unknown>]>([
        ["runs a step", (context) => context.step("step", untilAborted)],
        ["runs a repeatable step", (context) => context.step("step", untilAborted, { repeatable: true })],
        ["sleeps", (context) => context.sleep("nap", HOUR_MS)],
        ["waits for a signal", (context) => context.waitFor("word")],
        ["waits for a signal, with a limit", (context) => context.waitFor("word", { timeoutMs: HOUR_MS })],
        ["does something of its own", (context) => untilAborted(context.signal)],
      ])("of work that %s: its signal aborts with the reason", async (_what, stage) => {
        const caught: unknown[] = [];
        await ready(async (context) => {
          ran.push(context.id);
          caught.push(await stage(context).catch((error: unknown) => error), context.signal.reason);
          // Nothing more of it is done.
          await context.step("more", async () => ran.push("more"));
        });
        await start("one", { key: "k" });
        await start("next", { key: "k" });
        await found(() => ran.length);
        await settled();
        expect(await engine.cancel("one", "enough")).toBe(true);
        expect(await opened.ended("one")).toMatchObject({ state: "cancelled", error: "enough" });
        expect(caught[0]).toBeInstanceOf(ports.WorkCancelled);
        expect(caught[0]).toBe(caught[1]);
        expect(caught[0]).toMatchObject({ message: "enough" });
        await found(() => ran.length === 2);
        expect(ran).toEqual(["one", "next"]);
        await engine.cancel("next", "enough");
        await opened.ended("next");
      });

      it("counts, also if the work answers or throws afterwards, with the first reason", async () => {
        await ready(async (context, { fails }) => {
          ran.push(context.id);
          await untilAborted(context.signal).catch(() => {});
          if (fails) throw new Error("something else");
          return "an answer";
        });
        await engine.start("kind", "answers", {});
        await engine.start("kind", "throws", { fails: true });
        await found(() => ran.length === 2);
        for (const id of ["answers", "throws"]) {
          const [first] = await Promise.all([engine.cancel(id, "first"), engine.cancel(id, "second")]);
          expect(first).toBe(true);
          const status = await opened.ended(id);
          expect(status).toMatchObject({ state: "cancelled", error: "first" });
          expect(status.output).toBeUndefined();
        }
      });

      it("is false for work that is unknown or has ended", async () => {
        await ready(async () => 1);
        expect(await engine.cancel("none", "why")).toBe(false);
        await start("one");
        await opened.ended("one");
        expect(await engine.cancel("one", "why")).toBe(false);
        expect(await engine.status("one")).toMatchObject({ state: "completed", output: 1 });
      });
    });

    describe("drain", () => {
      it("waits for what executes, and lets nothing begin, though it is accepted", async () => {
        const end = await gated();
        await start("one", { key: "k" });
        await found(() => ran.length);
        let drained = false;
        const draining = engine.drain(HOUR_MS).then(() => (drained = true));
        expect(await start("two", { key: "k" })).toEqual({ duplicate: false });
        await start("three");
        await settled();
        expect(drained).toBe(false);
        await end("one");
        await draining;
        await settled();
        expect(ran).toEqual(["one"]);
        expect(await engine.status("two")).toMatchObject({ state: "waiting" });
      });

      it("stops with EngineStopped, when the time is over, what still executes; that has not ended", async () => {
        let reason: unknown;
        await ready(async (context) => {
          ran.push(context.id);
          await context.step("long", untilAborted).catch((error: unknown) => {
            reason = error;
            throw error;
          });
        });
        await start("one");
        await found(() => ran.length);
        await settled();
        const draining = engine.drain(1000);
        await opened.pass(1000);
        await draining;
        expect(await found(() => reason)).toBeInstanceOf(ports.EngineStopped);
        expect(await engine.status("one")).toMatchObject({ state: "executing" });
      });

      it("tells the end of what it stopped and may not be resumed", async () => {
        await ready(
          async (context) => {
            ran.push(context.id);
            await untilAborted(context.signal);
          },
          { onInterrupted: "close", closed: async (id, input) => void ran.push(`closed ${id} ${JSON.stringify(input)}`) },
        );
        await engine.start("kind", "one", { prompt: "p" });
        await found(() => ran.length);
        const draining = engine.drain(1000);
        await opened.pass(1000);
        await draining;
        expect(ran).toEqual(["one", 'closed one {"prompt":"p"}']);
        expect(await engine.status("one")).toMatchObject({ state: "interrupted" });
      });

      it("does not wait for work that sleeps or waits for a signal, nor lets it go on", async () => {
        await ready(async (context) => {
          ran.push(context.id);
          await context.waitFor("word");
          ran.push("went on");
        });
        await start("one");
        await found(() => ran.length);
        await settled();
        await engine.drain(HOUR_MS);
        await engine.signal("one", "word", 1);
        await settled();
        expect(ran).toEqual(["one"]);
      });

      it("ends when the last executing work begins to wait", async () => {
        const gate = createGate();
        await ready(async (context) => {
          ran.push(context.id);
          await context.step("first", () => gate.passed);
          await context.waitFor("word");
        });
        await start("one");
        await found(() => ran.length);
        await settled();
        const draining = engine.drain(HOUR_MS);
        gate.open();
        await draining;
        expect(await engine.status("one")).toMatchObject({ state: "executing" });
      });
    });

    engineChores(make);
    if (outages) engineOutages(make);
    if (parkAfterMs !== undefined) engineParking(make, parkAfterMs, backlog);
    if (durable) engineDurability(make, durable, parkAfterMs);
  });
}

/** What `ask` answered, asked again and again while something is under way: many times between two turns of the event loop. */
async function during<T>(underWay: Promise<unknown>, ask: (time: number) => T): Promise<readonly T[]> {
  let isOver = false;
  void underWay.then(() => (isOver = true));
  const answers: T[] = [];
  while (!isOver) {
    for (let hop = 0; hop < 20 && !isOver; hop++) {
      answers.push(ask(answers.length));
      await undefined;
    }
    await nextTurn();
  }
  return answers;
}
