import { setTimeout as wait } from "node:timers/promises";
import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { createGate, type EngineUnderTest, found, type OpenEngine, openEngine, settled, untilAborted } from "./engine-subject.ts";

/** An engine whose work several processes share. */
export interface SharedEngine {
  /** A process with a new, empty store. */
  make(): EngineUnderTest | Promise<EngineUnderTest>;
  /** One more process with the same store. All live at the same time. */
  beside(first: EngineUnderTest): EngineUnderTest | Promise<EngineUnderTest>;
  /** The process is dead from now on, as far as others can notice. */
  kill(process: EngineUnderTest): void;
  /** Nothing of the process reaches the store, and others notice only its silence. */
  freeze(process: EngineUnderTest): void;
  thaw(process: EngineUnderTest): void;
  readonly parkAfterMs: number;
}

type Work = (context: ports.WorkContext, input: Record<string, unknown>) => Promise<unknown>;

/** A process of a test, and how it is broken. */
interface OpenProcess extends OpenEngine {
  readonly under: EngineUnderTest;
}

const HOUR_MS = 3_600_000;

/** The law of engines that several processes share, besides `engineConformance`, as vitest tests. */
export function sharedEngineConformance(name: string, shared: SharedEngine): void {
  describeSuite(`engine port, shared by processes: ${name}`, () => {
    let processes: OpenProcess[];
    let ran: string[];
    beforeEach(() => {
      processes = [];
      ran = [];
    });
    afterEach(async () => {
      for (const { under } of processes) shared.thaw(under);
      await Promise.all(processes.map(({ close }) => close()));
    });

    const add = async (define: (engine: ports.Engine, at: number) => void): Promise<OpenProcess> => {
      const at = processes.length;
      const under = await (processes[0] ? shared.beside(processes[0].under) : shared.make());
      const process = { ...(await openEngine(under, (engine) => define(engine, at))), under };
      processes.push(process);
      await process.engine.ready();
      return process;
    };
    /** Processes with one kind. `work` is told in which process it executes. */
    const open = async (
      count: number,
      work: (at: number, ...given: Parameters<Work>) => Promise<unknown>,
      options: Partial<ports.WorkOptions<object>> = {},
    ): Promise<readonly OpenProcess[]> => {
      const define = (engine: ports.Engine, at: number) =>
        engine.define("kind", (context, input) => work(at, context, input as Record<string, unknown>), {
          onInterrupted: "resume",
          ...options,
        });
      for (let at = 0; at < count; at++) await add(define);
      return processes;
    };
    const statusOf = (id: string) => processes[0]!.engine.status(id);
    /** The process that executes a work, and another one. */
    const whereIs = async (id: string): Promise<readonly [OpenProcess, OpenProcess]> => {
      const executing = await found(async () => (await statusOf(id))?.process);
      const here = processes.find(({ engine }) => engine.process === executing)!;
      return [here, processes.find((each) => each !== here)!];
    };

    it("processes have different IDs, and say that they share", async () => {
      const [one, other] = await open(2, async () => {});
      expect(one!.engine.process).not.toBe(other!.engine.process);
      expect([one!.engine.isShared, other!.engine.isShared]).toEqual([true, true]);
    });

    it.each(["here", "anywhere"] as const)("work that begins %s is executed by all, each work once", async (begins) => {
      const gate = createGate();
      const work = async (at: number, { id }: ports.WorkContext): Promise<void> => {
        ran.push(`${at} ${id}`);
        await gate.passed;
      };
      const [first] = await open(2, work, { concurrency: 3, begins });
      const ids = Array.from({ length: 8 }, (_, at) => `work-${at}`);
      await Promise.all(ids.map((id) => first!.engine.start("kind", id, {})));
      await found(() => ran.length === 6);
      expect(ran.filter((each) => each.startsWith("0"))).toHaveLength(3);
      gate.open();
      await Promise.all(ids.map((id) => first!.ended(id)));
      expect(ran.map((each) => each.slice(2)).toSorted()).toEqual(ids);
    });

    it.each([1, 2])("work of one key is executed in its order, %i at a time, over all processes", async (limit) => {
      const begun = new Map<string, string[]>();
      const executing = new Map<string, number>();
      let most = 0;
      const work = async (at: number, { id, step }: ports.WorkContext): Promise<void> => {
        const key = id.split("/")[0]!;
        begun.set(key, [...(begun.get(key) ?? []), id]);
        const now = (executing.get(key) ?? 0) + 1;
        executing.set(key, now);
        most = Math.max(most, now);
        ran.push(`${at}`);
        await step("work", () => wait(Math.random() * 4), { repeatable: true });
        executing.set(key, executing.get(key)! - 1);
      };
      await open(3, work, { concurrencyPerKey: limit, concurrency: 2, begins: "anywhere" });
      const keys = ["a", "b", "c"];
      const ids = (key: string) => Array.from({ length: 12 }, (_, at) => `${key}/${at}`);
      await Promise.all(
        keys.map(async (key) => {
          // Each is accepted after the one before, by another process.
          for (const [at, id] of ids(key).entries()) await processes[at % 3]!.engine.start("kind", id, {}, { key });
        }),
      );
      await Promise.all(keys.flatMap(ids).map((id) => processes[0]!.ended(id)));
      expect(most).toBeLessThanOrEqual(limit);
      expect(new Set(ran).size).toBeGreaterThan(1);
      if (limit === 1) for (const key of keys) expect(begun.get(key)).toEqual(ids(key));
      else for (const key of keys) expect(begun.get(key)?.toSorted()).toEqual(ids(key).toSorted());
    });

    it("work is one work when all processes start it at once", async () => {
      await open(3, async (_at, { id }) => void ran.push(id));
      const starts = Array.from({ length: 30 }, (_, at) => processes[at % 3]!.engine.start("kind", "one", {}));
      expect((await Promise.all(starts)).filter(({ duplicate }) => !duplicate)).toHaveLength(1);
      await processes[1]!.ended("one");
      await settled();
      expect(ran).toEqual(["one"]);
    });

    it("a signal reaches work that another process executes, in order, and work that is parked", async () => {
      const work = async (at: number, { waitFor }: ports.WorkContext): Promise<unknown> => {
        ran.push(`${at}`);
        const words = [await waitFor("word"), await waitFor("word"), await waitFor("word")];
        return words;
      };
      const [first] = await open(2, work);
      await first!.engine.start("kind", "one", {});
      const [here, other] = await whereIs("one");
      expect(await other.engine.signal("one", "word", "a")).toBe(true);
      await settled();
      expect(await other.engine.signal("one", "word", "b")).toBe(true);
      do {
        await settled();
        await here.pass(shared.parkAfterMs);
      } while ((await statusOf("one"))?.state !== "waiting");
      expect(await other.engine.signal("one", "word", "c")).toBe(true);
      expect(await first!.ended("one")).toMatchObject({ output: ["a", "b", "c"], attempt: 1 });
    });

    it("a cancellation reaches work that another process executes, with its reason", async () => {
      const work = async (_at: number, { signal }: ports.WorkContext): Promise<void> => {
        await untilAborted(signal).catch((error: Error) => void ran.push(`${error.name}: ${error.message}`));
      };
      const [first] = await open(2, work);
      await first!.engine.start("kind", "one", {});
      const [, other] = await whereIs("one");
      expect(await other.engine.cancel("one", "enough")).toBe(true);
      expect(await other.ended("one")).toMatchObject({ state: "cancelled", error: "enough" });
      expect(ran).toEqual(["WorkCancelled: enough"]);
    });

    it("parked work continues in another process when it is due, and its process is gone", async () => {
      const [first, second] = await open(2, async (at, { id, sleep }) => {
        ran.push(`${at} ${id}`);
        await sleep("nap", HOUR_MS);
      });
      await first!.engine.start("kind", "one", {});
      await found(() => ran.length);
      do {
        await settled();
        for (const { pass } of processes) await pass(shared.parkAfterMs);
      } while ((await statusOf("one"))?.state !== "waiting");
      await first!.close();
      ran = [];
      // How soon the other process looks for work of others is up to it.
      await found(async () => {
        await second!.pass(HOUR_MS);
        return (await second!.engine.status("one"))?.endedAt;
      });
      expect(ran).toEqual(["1 one"]);
    });

    it("work of a killed process is closed by a living one, whose own work goes on", async () => {
      const gate = createGate();
      const closed = async (id: string, input: object): Promise<void> => void ran.push(`closed ${id} ${JSON.stringify(input)}`);
      const work = async (_at: number, { id, signal }: ports.WorkContext): Promise<void> => {
        ran.push(id);
        await Promise.race([gate.passed, untilAborted(signal)]);
      };
      const [first, second] = await open(2, work, { onInterrupted: "close", closed });
      await first!.engine.start("kind", "one", { of: "one" });
      await second!.engine.start("kind", "two", {});
      await found(() => ran.length === 2);
      const [here, other] = await whereIs("one");
      expect((await whereIs("two"))[0]).toBe(other);
      shared.kill(here.under);
      expect(await other.ended("one")).toMatchObject({ state: "interrupted" });
      gate.open();
      expect(await other.ended("two")).toMatchObject({ state: "completed", attempt: 1 });
      expect(ran.toSorted()).toEqual(['closed one {"of":"one"}', "one", "two"]);
    });

    it("work of a process that closes continues in another one at once", async () => {
      const work = async (at: number, { id, attempt, signal }: ports.WorkContext): Promise<void> => {
        ran.push(`${at} ${id} ${attempt}`);
        if (attempt === 1) await untilAborted(signal);
      };
      const [first] = await open(2, work);
      await first!.engine.start("kind", "one", {});
      await found(() => ran.length);
      const [here, other] = await whereIs("one");
      await here.close();
      expect(await other.ended("one")).toMatchObject({ state: "completed", attempt: 2 });
      expect(ran).toHaveLength(2);
    });

    it("a process that drains begins nothing, and others do", async () => {
      const [first] = await open(2, async (at, { id }) => void ran.push(`${at} ${id}`));
      await first!.engine.drain(HOUR_MS);
      const ids = ["one", "two", "three"];
      for (const id of ids) await first!.engine.start("kind", id, {});
      await Promise.all(ids.map((id) => first!.ended(id)));
      expect(ran.toSorted()).toEqual(["1 one", "1 three", "1 two"]);
    });

    it("a chore runs in one process at a time, and in another one when that process is killed", async () => {
      const gate = createGate();
      let running = 0;
      let most = 0;
      const define = (engine: ports.Engine, at: number): void =>
        engine.chore("sweep", { everyMs: HOUR_MS }, async (signal) => {
          most = Math.max(most, ++running);
          ran.push(`${at}`);
          await Promise.race([gate.passed, untilAborted(signal)]).catch(() => {});
          running--;
        });
      for (let at = 0; at < 3; at++) await add(define);
      await found(() => ran.length);
      await settled();
      expect(ran).toHaveLength(1);
      const runner = processes[Number(ran[0])]!;
      // Its function runs on here: others count as alone.
      running = 0;
      shared.kill(runner.under);
      await found(() => ran.length === 2);
      expect(ran[1]).not.toBe(ran[0]);
      expect(most).toBe(1);
      gate.open();
    });

    describe("a process that was frozen for longer than its lease", () => {
      /** A work that waits in `here` while that process is frozen, and is then executed by another one. */
      const takeOver = async (late: (context: ports.WorkContext, here: OpenProcess) => Promise<void>) => {
        const gate = createGate();
        const ended = Promise.withResolvers<void>();
        const work = async (at: number, context: ports.WorkContext): Promise<string> => {
          ran.push(`${at} ${context.attempt}`);
          if (context.attempt > 1) return "second";
          await gate.passed;
          await late(context, processes[at]!).then(ended.resolve, ended.reject);
          return "first";
        };
        const [first] = await open(2, work);
        await first!.engine.start("kind", "one", {});
        await found(() => ran.length);
        const [here, other] = await whereIs("one");
        shared.freeze(here.under);
        expect(await other.ended("one")).toMatchObject({ output: "second", attempt: 2 });
        shared.thaw(here.under);
        gate.open();
        await ended.promise;
        expect(await other.engine.status("one")).toMatchObject({ output: "second", attempt: 2 });
        expect(ran).toHaveLength(2);
        return { here, other };
      };

      it("is fenced: its execution aborts, and begins no step", async () => {
        await takeOver(async ({ step, signal }) => {
          const late = await step("late", async () => ran.push("late")).catch((error: unknown) => error);
          expect(late).toBeInstanceOf(ports.EngineFenced);
          expect(signal.reason).toBeInstanceOf(ports.EngineFenced);
        });
      });

      it("writes no batch with the condition `held`", async () => {
        const { other } = await takeOver(async ({ held }, here) => {
          const batch = [here.notes.write.put("note", { text: "late" }), held];
          // The first connection may have been lost meanwhile.
          const outcome = await here.batch(batch).catch((error: Error) => error.name);
          if (outcome !== "RecordsUnavailable") expect(outcome).toBe("RecordConflict");
          else await expect(here.batch(batch)).rejects.toBeInstanceOf(ports.RecordConflict);
        });
        expect(await other.notes.get("note")).toBeUndefined();
      });

      it("ends no work with a batch of records", async () => {
        const { other } = await takeOver(async ({ endWith }, here) => {
          const batch = () => endWith((ended) => here.batch([here.notes.write.put("note", { text: "late" }), ended]));
          // The first connection may have been lost meanwhile.
          const outcome = await batch().catch((error: Error) => error.name);
          if (outcome !== "RecordsUnavailable") expect(outcome).toBe("RecordConflict");
          else await expect(batch()).rejects.toBeInstanceOf(ports.RecordConflict);
        });
        expect(await other.notes.get("note")).toBeUndefined();
      });

      it("takes part again", async () => {
        const { here, other } = await takeOver(async () => {});
        await other.engine.drain(0);
        ran = [];
        await here.engine.start("kind", "two", {});
        await here.engine.start("kind", "three", {});
        for (const id of ["two", "three"]) await found(async () => (await here.engine.status(id))?.process ?? ran.length === 2);
        expect(ran.map((each) => each[0])).toEqual(Array.from(ran, () => `${processes.indexOf(here)}`));
      });
    });
  });
}
