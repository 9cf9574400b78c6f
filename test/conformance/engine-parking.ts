import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGate, type EngineUnderTest, found, type OpenEngine, openEngine, settled, untilAborted } from "./engine-subject.ts";

const HOUR_MS = 3_600_000;

type Work = (context: ports.WorkContext, input: Record<string, unknown>) => Promise<unknown>;

/**
 * What an engine does with work that only waits, as vitest tests; `parkAfterMs` is after how long it parks it, of the clock that `pass` moves.
 */
export function engineParking(
  make: () => EngineUnderTest | Promise<EngineUnderTest>,
  parkAfterMs: number,
  backlog: number,
): void {
  describe("work that only waits", () => {
    let opened: OpenEngine;
    let engine: ports.Engine;
    /** What the works said, and how often each began and was parked. */
    let said: string[];
    let begun: string[];
    let parked: string[];
    beforeEach(async () => {
      opened = await openEngine(await make());
      engine = opened.engine;
      [said, begun, parked] = [[], [], []];
    });
    afterEach(() => opened.close());

    const ready = async (work: Work, options: Partial<ports.WorkOptions<object>> = {}): Promise<void> => {
      const observed: Work = async (context, input) => {
        begun.push(context.id);
        context.signal.addEventListener("abort", () => {
          if (context.signal.reason instanceof ports.WorkParked) parked.push(context.id);
        });
        return work(context, input);
      };
      engine.define("kind", observed, { onInterrupted: "resume", ...options });
      await engine.ready();
    };
    const start = (id: string, options?: ports.StartOptions) => engine.start("kind", id, {}, options);
    /** Let time pass until the given works have been parked so often. Answers how much: a slow disk takes its part. */
    const park = async (ids: readonly string[], times = 1): Promise<number> => {
      await found(() => ids.every((id) => countOf(begun, id) >= times));
      let passed = 0;
      do {
        await settled();
        await opened.pass(parkAfterMs);
        passed += parkAfterMs;
        await settled();
      } while (!ids.every((id) => countOf(parked, id) >= times));
      return passed;
    };
    const outputOf = async (id: string): Promise<unknown> => (await opened.ended(id)).output;

    it("is parked when it has done nothing else for a while: signal and wait tell so, and it waits", async () => {
      const reasons: unknown[] = [];
      await ready(async (context) => {
        await context.waitFor("word").catch((error: unknown) => {
          reasons.push(error, context.signal.reason);
          throw error;
        });
      });
      await start("one");
      await found(() => begun.length);
      await settled();
      await opened.pass(parkAfterMs - 1);
      await settled();
      expect(reasons).toEqual([]);
      expect(await engine.status("one")).toMatchObject({ state: "executing", attempt: 1 });
      await opened.pass(1);
      await found(() => reasons.length);
      expect(reasons[0]).toBeInstanceOf(ports.WorkParked);
      expect(reasons[1]).toBe(reasons[0]);
      await found(async () => (await engine.status("one"))?.state === "waiting");
      expect(await engine.status("one")).toMatchObject({ attempt: 1, endedAt: undefined });
    });

    it("is executed again when a signal comes that it waits for, finished steps answering what they answered", async () => {
      await ready(async (context) => {
        const first = await context.step("first", async () => said.push("first"));
        const word = await context.waitFor("word");
        const second = await context.step("second", async () => said.push("second"));
        return [first, word, second];
      });
      await start("one");
      await park(["one"]);
      expect(await engine.signal("one", "word", { yes: true })).toBe(true);
      expect(await opened.ended("one")).toMatchObject({ state: "completed", attempt: 1, output: [1, { yes: true }, 2] });
      expect(begun).toEqual(["one", "one"]);
    });

    it("is not by a signal that it does not wait for; that is kept", async () => {
      await ready(async (context) => [await context.waitFor("word"), await context.waitFor("other")]);
      await start("one");
      await park(["one"]);
      await engine.signal("one", "other", "b");
      await settled();
      expect(begun).toEqual(["one"]);
      await engine.signal("one", "word", "a");
      expect(await outputOf("one")).toEqual(["a", "b"]);
    });

    it("is not parked while one of its branches does something outside of steps, and is when all branches wait", async () => {
      const gate = createGate();
      await ready(async (context) => {
        const waits = context.branch((branch) => branch.waitFor("word"));
        const works = context.branch(async (branch) => {
          await branch.step("first", async () => said.push("first"));
          await gate.passed;
          await branch.branch(async (inner) => {
            await inner.step("second", async () => said.push("second"));
            await inner.waitFor("other");
          });
          // Nothing in this branch waits any more.
          said.push("other came");
        });
        return Promise.all([waits, works]);
      });
      await start("one");
      await found(() => said.includes("first"));
      await settled();
      await opened.pass(parkAfterMs * 2);
      await settled();
      expect(parked).toEqual([]);
      gate.open();
      await found(() => said.includes("second"));
      await park(["one"]);
      await engine.signal("one", "other", "b");
      await found(() => said.includes("other came"));
      await park(["one"], 2);
      await engine.signal("one", "word", "a");
      expect(await outputOf("one")).toEqual(["a", null]);
    });

    it("continues when its sleep has ended, counted from when it was first reached, and not before", async () => {
      await ready(async (context) => {
        await context.sleep("nap", HOUR_MS);
        said.push("slept");
      });
      await start("one");
      const passed = await park(["one"]);
      await opened.pass(HOUR_MS - passed - 1);
      await settled();
      expect(begun).toEqual(["one"]);
      await opened.pass(1);
      await opened.ended("one");
      expect([begun, said]).toEqual([["one", "one"], ["slept"]]);
    });

    it("goes on after a sleep of a fraction of a millisecond", async () => {
      await ready(async (context) => context.sleep("nap", HOUR_MS + 0.25));
      await start("one");
      await park(["one"]);
      await opened.pass(HOUR_MS + 1);
      expect(await opened.ended("one")).toMatchObject({ state: "completed" });
    });

    it("continues without a signal when the time of a wait has ended", async () => {
      await ready(async (context) => {
        const none = await context.waitFor("word", { timeoutMs: HOUR_MS });
        return [none === undefined, await context.waitFor("word")];
      });
      await start("one");
      const passed = await park(["one"]);
      await opened.pass(HOUR_MS - passed);
      await found(() => begun.length === 2);
      await settled();
      await engine.signal("one", "word", "late");
      expect(await outputOf("one")).toEqual([true, "late"]);
    });

    it("comes back at its own time, also if other work was parked in between", async () => {
      await ready(async (context, { ms }) => context.sleep("nap", Number(ms)));
      // Neither in their order nor against it.
      const naps = [5, 2, 8, 3, 7, 4, 6].map((hours) => [`nap-${hours}`, hours * HOUR_MS] as const);
      for (const [id, ms] of naps) await engine.start("kind", id, { ms });
      const passed = await park(naps.map(([id]) => id));
      const began = (): string[] => begun.slice(naps.length);
      await opened.pass(2 * HOUR_MS - passed);
      await opened.ended("nap-2");
      for (const hours of [3, 4, 5, 6, 7, 8]) {
        await opened.pass(HOUR_MS);
        await opened.ended(`nap-${hours}`);
        expect(began().at(-1)).toBe(`nap-${hours}`);
      }
      expect(began()).toHaveLength(naps.length);
    });

    it("is parked as often as it waits for long", async () => {
      await ready(async (context) => {
        const words = [];
        for (let at = 0; at < 4; at++) {
          words.push(await context.waitFor("word"));
          await context.step(`step-${at}`, async () => said.push(`step-${at}`));
        }
        return words;
      });
      await start("one");
      for (let at = 0; at < 4; at++) {
        await park(["one"], at + 1);
        await engine.signal("one", "word", at);
      }
      expect(await opened.ended("one")).toMatchObject({ output: [0, 1, 2, 3], attempt: 1 });
      expect(said).toEqual(["step-0", "step-1", "step-2", "step-3"]);
    });

    it("is not parked when it waits for less, however often", async () => {
      await ready(async (context) => {
        for (let at = 0; at < 5; at++) await context.sleep(`nap-${at}`, parkAfterMs * 0.9);
      });
      await start("one");
      for (let at = 0; at < 5; at++) {
        await settled();
        await opened.pass(parkAfterMs * 0.9);
      }
      await opened.ended("one");
      expect([begun, parked]).toEqual([["one"], []]);
    });

    it("is not parked while a step of it runs", async () => {
      const gate = createGate();
      await ready(async (context) => {
        await Promise.all([context.step("long", () => gate.passed), context.waitFor("word")]);
      });
      await start("one");
      await found(() => begun.length);
      await settled();
      await opened.pass(parkAfterMs * 3);
      await settled();
      expect(parked).toEqual([]);
      gate.open();
      await park(["one"]);
      await engine.signal("one", "word", 1);
      await opened.ended("one");
    });

    it("is not parked where its function may not run twice", async () => {
      await ready(async (context) => context.waitFor("word"), { onInterrupted: "close" });
      await start("one");
      await found(() => begun.length);
      await settled();
      await opened.pass(HOUR_MS);
      await settled();
      await engine.signal("one", "word", "there");
      expect(await outputOf("one")).toBe("there");
      expect([begun, parked]).toEqual([["one"], []]);
    });

    it("can be cancelled: it is executed with an aborted signal, and ends", async () => {
      const seen: unknown[] = [];
      await ready(async (context) => {
        await context.step("first", async () => said.push("first"));
        await context.waitFor("word").catch((error: unknown) => {
          if (error instanceof ports.WorkCancelled) seen.push(error, context.signal.reason);
          throw error;
        });
      });
      await start("one", { key: "k" });
      await start("next", { key: "k" });
      await park(["one"]);
      expect(await engine.cancel("one", "enough")).toBe(true);
      expect(await opened.ended("one")).toMatchObject({ state: "cancelled", error: "enough" });
      expect(seen[0]).toBeInstanceOf(ports.WorkCancelled);
      expect(seen[1]).toBe(seen[0]);
      await found(() => begun.includes("next"));
      await engine.cancel("next", "enough");
      await opened.ended("next");
      expect(said).toEqual(["first", "first"]);
    });

    it("holds its key, but no place among what executes", async () => {
      await ready(
        async (context) => {
          if (context.id === "waits") await context.waitFor("word");
          said.push(context.id);
        },
        { concurrency: 1 },
      );
      await start("waits", { key: "k" });
      await start("behind", { key: "k" });
      await park(["waits"]);
      await start("beside");
      await opened.ended("beside");
      await settled();
      expect(said).toEqual(["beside"]);
      await engine.signal("waits", "word", 1);
      await opened.ended("behind");
      expect(said).toEqual(["beside", "waits", "behind"]);
    });

    it.each<[string, (id: string) => Promise<unknown>, object]>([
      ["a signal that it waits for", (id) => engine.signal(id, "word", "there"), { state: "completed", output: "there" }],
      ["its cancellation", (id) => engine.cancel(id, "enough"), { state: "cancelled", error: "enough" }],
    ])("loses nothing that comes while its function ends: %s", async (_what, come, end) => {
      const gate = createGate();
      let executing = 0;
      await ready(async (context) => {
        expect(++executing).toBe(1);
        try {
          return await context.waitFor("word");
        } finally {
          if (context.signal.reason instanceof ports.WorkParked) await gate.passed;
          executing--;
        }
      });
      await start("one");
      await park(["one"]);
      await come("one");
      await settled();
      // Never beside itself.
      expect(begun).toEqual(["one"]);
      gate.open();
      expect(await opened.ended("one")).toMatchObject(end);
      expect(begun).toEqual(["one", "one"]);
    });

    it("loses no signal that is on its way when it is parked", async () => {
      await ready(async (context) => {
        const words: unknown[] = [];
        for (let at = 0; at < 5; at++) words.push(await context.waitFor("word"));
        return words;
      });
      const ids = Array.from({ length: 20 }, (_, at) => `work-${at}`);
      for (const id of ids) await start(id);
      await found(() => begun.length === ids.length);
      for (let word = 0; word < 5; word++) {
        await settled();
        // Not waited for: some are kept before, some while, and some after the work is parked.
        const passing = opened.pass(parkAfterMs);
        const told = ids.map(async (id, at) => {
          for (let turn = 0; turn < at; turn++) await Promise.resolve();
          return engine.signal(id, "word", word);
        });
        await Promise.all([passing, ...told]);
      }
      for (const id of ids) expect(await outputOf(id)).toEqual([0, 1, 2, 3, 4]);
    });

    it("is not executed beside a function that does not end, and what that answers then does not count", async () => {
      const gate = createGate();
      await ready(async (context) => {
        const word = await context.waitFor("word").catch(() => "caught");
        if (word === "caught") await gate.passed;
        return word;
      });
      await start("one");
      await park(["one"]);
      await engine.signal("one", "word", "there");
      await opened.pass(HOUR_MS);
      await settled();
      expect(begun).toEqual(["one"]);
      expect(await engine.status("one")).toMatchObject({ state: "executing" });
      gate.open();
      expect(await outputOf("one")).toBe("there");
    });

    it("begins no step after it was told to park, also if its function tries to", async () => {
      await ready(async (context) => {
        try {
          return await context.waitFor("word");
        } catch {
          await context.step("mourn", async () => said.push("mourned"));
          return "never";
        }
      });
      await start("one");
      await park(["one"]);
      await engine.signal("one", "word", "there");
      expect(await outputOf("one")).toBe("there");
      expect(said).toEqual([]);
    });

    it("has the same signals again, in their order, under several names and waited for repeatedly", async () => {
      await ready(async (context) => {
        const got: unknown[] = [];
        for (const name of ["a", "b", "a", "c", "a", "b"]) got.push(`${name} ${await context.waitFor<string>(name)}`);
        said.push("is past the names");
        got.push((await context.waitFor("a", { timeoutMs: 10 })) === undefined, await context.waitFor("end"));
        got.push(await context.waitFor("a"), await context.waitFor("b"));
        return got;
      });
      await start("one");
      await engine.signal("one", "b", 1);
      await engine.signal("one", "a", 1);
      await engine.signal("one", "a", 2);
      await park(["one"]);
      await engine.signal("one", "b", 2);
      await engine.signal("one", "c", 1);
      await park(["one"], 2);
      await engine.signal("one", "a", 3);
      await found(() => said.length);
      await settled();
      await opened.pass(10);
      await park(["one"], 3);
      await engine.signal("one", "a", 4);
      await engine.signal("one", "b", 3);
      await engine.signal("one", "end", 1);
      expect(await outputOf("one")).toEqual(["a 1", "b 1", "a 2", "c 1", "a 3", "b 2", true, 1, 4, 3]);
    });

    it("gives each of several waits of one name the signal that it had, also where one has a limit", async () => {
      await ready(async (context) => {
        const first = context.waitFor("word", { timeoutMs: HOUR_MS }).then((word) => void said.push(`first ${String(word)}`));
        const second = context.waitFor("word").then((word) => void said.push(`second ${String(word)}`));
        await Promise.all([first, second, context.waitFor("end")]);
      });
      await start("one");
      // While the limit is being written down, too.
      await Promise.all([engine.signal("one", "word", "a"), engine.signal("one", "word", "b")]);
      await park(["one"]);
      await engine.signal("one", "end", 1);
      await opened.ended("one");
      expect([...new Set(said)].toSorted()).toEqual(["first a", "second b"]);
    });

    it("keeps the winner of a race, also if the others arrived since", async () => {
      await ready(async (context) => {
        const winner = await Promise.race(["no", "perhaps", "yes"].map((name) => context.waitFor(name).then(() => name)));
        const nap = context.sleep("nap", HOUR_MS).then(() => "nap");
        const then = await Promise.race([context.waitFor("late").then(() => "late"), nap]);
        said.push(`${winner} ${then}`);
        await context.waitFor("end");
        return `${winner} ${then}`;
      });
      await start("one");
      await park(["one"]);
      await engine.signal("one", "yes", 1);
      await park(["one"], 2);
      await opened.pass(HOUR_MS);
      await found(() => said.length);
      await park(["one"], 3);
      for (const name of ["perhaps", "no", "late"]) await engine.signal("one", name, 1);
      await settled();
      await engine.signal("one", "end", 1);
      expect(await outputOf("one")).toBe("yes nap");
      expect(new Set(said)).toEqual(new Set(["yes nap"]));
    });

    it("is told in which order signals of several names came while it was parked", async () => {
      const gate = createGate();
      await ready(
        async (context) => {
          if (context.id === "long") return context.step("long", () => gate.passed);
          return Promise.race(["no", "yes"].map((name) => context.waitFor(name).then(() => name)));
        },
        { concurrency: 1 },
      );
      await start("one");
      await park(["one"]);
      await start("long");
      await found(() => begun.includes("long"));
      await engine.signal("one", "yes", 1);
      await engine.signal("one", "no", 1);
      gate.open();
      expect(await outputOf("one")).toBe("yes");
    });

    it("comes back also if many do at once: each is executed once more", async () => {
      const ids = Array.from({ length: backlog }, (_, at) => `work-${at}`);
      await ready(
        async (context) => {
          await context.waitFor("word");
          await context.step("say", async () => said.push(context.id));
        },
        { concurrency: 4 },
      );
      await Promise.all(ids.map((id) => start(id)));
      await found(() => begun.length === ids.length);
      await park(ids);
      for (const id of ids.slice(0, 4)) await engine.signal(id, "none", 1);
      await Promise.all(ids.map((id) => engine.signal(id, "word", 1)));
      for (const id of ids) await opened.ended(id);
      expect(said.toSorted()).toEqual(ids.toSorted());
      expect(begun).toHaveLength(ids.length * 2);
    });

    it("does not come back when nothing may begin any more", async () => {
      await ready(async (context) => context.waitFor("word"));
      await start("one");
      await park(["one"]);
      await engine.drain(HOUR_MS);
      expect(await engine.signal("one", "word", 1)).toBe(true);
      await settled();
      expect(begun).toEqual(["one"]);
      expect(await engine.status("one")).toMatchObject({ state: "waiting" });
    });

    it("does not hinder a drain, though its function does not end", async () => {
      await ready(async (context) => {
        await context.waitFor("word").catch(() => {});
        await untilAborted(new AbortController().signal);
      });
      await start("one");
      await park(["one"]);
      await engine.drain(0);
      expect(begun).toEqual(["one"]);
    });
  });
}

function countOf(names: readonly string[], name: string): number {
  return names.reduce((count, each) => count + Number(each === name), 0);
}
