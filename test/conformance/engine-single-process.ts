import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import type { DurableEngine } from "./engine-durable.ts";
import { createGate, type EngineUnderTest, found, type OpenEngine, openEngine, settled, untilAborted } from "./engine-subject.ts";

/** Options of `singleProcessEngineConformance`. */
export interface SingleProcessOptions {
  /** After how many milliseconds of `pass` work that only waits is parked: then its order is tested too. */
  readonly parkAfterMs?: number;
  /** How further processes meet the same store: then ownership is tested too. */
  readonly owned?: OwnedEngine;
}

/** An engine whose work one process owns at a time. `again` gives another process of the same owner. */
export interface OwnedEngine extends DurableEngine {
  /** A process of another owner. */
  rival(first: EngineUnderTest): EngineUnderTest;
  /** How long the owner of the work keeps it without a sign of life, in milliseconds of the process's own clock. */
  readonly leaseMs: number;
  /** Whether engine and records share a store, so that one commit covers both. */
  readonly oneCommit: boolean;
}

type Work = (context: ports.WorkContext, input: Record<string, unknown>) => Promise<unknown>;

/** More waiting work than an engine should hold in memory at once. */
const BACKLOG = 700;

/**
 * The law that engines for a single process keep besides `engineConformance`, as vitest tests: work of all keys begins in the order
 * of its acceptance, and one process owns all work.
 */
export function singleProcessEngineConformance(
  name: string,
  make: () => EngineUnderTest | Promise<EngineUnderTest>,
  { owned, parkAfterMs }: SingleProcessOptions = {},
): void {
  describeSuite(`engine port, single process: ${name}`, () => {
    singleProcessOrder(make, parkAfterMs);
    if (owned) ownership(make, owned);
  });
}

function singleProcessOrder(make: () => EngineUnderTest | Promise<EngineUnderTest>, parkAfterMs: number | undefined): void {
  describe("order over keys", () => {
    let opened: OpenEngine;
    let engine: ports.Engine;
    let gates: Map<string, ReturnType<typeof createGate>>;
    let ran: string[];
    beforeEach(async () => {
      opened = await openEngine(await make());
      engine = opened.engine;
      gates = new Map();
      ran = [];
    });
    afterEach(() => opened.close());

    const define = (work: Work, options: Partial<ports.WorkOptions<object>>): Promise<void> => {
      engine.define("kind", work, { onInterrupted: "resume", ...options });
      return engine.ready();
    };
    const gated: Work = async ({ id }) => {
      const gate = createGate();
      gates.set(id, gate);
      ran.push(id);
      await gate.passed;
    };
    const end = async (id: string): Promise<void> => {
      (await found(() => gates.get(id))).open();
      await opened.ended(id);
    };
    const start = (id: string, key = id) => engine.start("kind", id, {}, { key });

    it("is first in, first out", async () => {
      await define(gated, { concurrency: 3 });
      await Promise.all(["e", "d", "c", "b", "a"].map((id) => start(id)));
      await found(() => ran.length === 3);
      await settled();
      expect(ran).toEqual(["e", "d", "c"]);
      await end("d");
      await found(() => ran.length === 4);
      expect(ran).toEqual(["e", "d", "c", "b"]);
      for (const id of ["e", "c", "b", "a"]) await end(id);
    });

    it("lets keys take turns: a key with much waiting work comes last again after each work", async () => {
      await define(gated, { concurrency: 1 });
      const busy = Array.from({ length: 20 }, (_, at) => `busy-${at}`);
      await Promise.all(busy.map((id) => start(id, "busy")));
      await Promise.all(["a", "b"].map((id) => start(id)));
      const turns = ["busy-0", "a", "b", ...busy.slice(1)];
      for (const id of turns) await end(id);
      expect(ran).toEqual(turns);
    });

    it("holds for a long queue, also while more work is accepted", async () => {
      const gate = createGate();
      const work: Work = async ({ id }) => {
        await gate.passed;
        ran.push(id);
      };
      await define(work, { concurrency: 1 });
      const ids = Array.from({ length: BACKLOG }, (_, at) => `work-${at}`);
      await Promise.all(ids.slice(0, -100).map((id) => start(id)));
      gate.open();
      await Promise.all(ids.slice(-100).map((id) => start(id)));
      await opened.ended(ids.at(-1)!);
      expect(ran).toEqual(ids);
    });

    describe.runIf(parkAfterMs !== undefined)("of parked work", () => {
      const park = async (ids: readonly string[]): Promise<void> => {
        const isParked = async (id: string) => (await engine.status(id))?.state === "waiting" && ran.includes(`${id} begun`);
        do {
          await settled();
          await opened.pass(parkAfterMs!);
          await settled();
        } while (!(await Promise.all(ids.map(isParked))).every(Boolean));
        ran = [];
      };

      it("is that in which it came back, before work that has not begun", async () => {
        const gate = createGate();
        const work: Work = async ({ id, step, waitFor }) => {
          ran.push(`${id} begun`);
          if (id === "long") await step("long", () => gate.passed);
          if (id.startsWith("waits")) await waitFor("word");
          await step("say", async () => ran.push(id));
        };
        await define(work, { concurrency: 1 });
        const waiters = ["waits-1", "waits-2", "waits-3"];
        for (const id of waiters) await start(id);
        await park(waiters);
        for (const id of ["long", "new-1", "new-2"]) await start(id);
        await found(() => ran.length);
        for (const id of ["waits-2", "waits-3", "waits-1"]) await engine.signal(id, "word", 1);
        gate.open();
        await opened.ended("new-2");
        const said = ran.filter((each) => !each.endsWith("begun"));
        expect(said).toEqual(["long", "waits-2", "waits-3", "waits-1", "new-1", "new-2"]);
      });

      it("holds if more comes back than is held in memory at once", async () => {
        const work: Work = async ({ id, step, waitFor }) => {
          ran.push(`${id} begun`);
          await waitFor("word");
          await step("say", async () => ran.push(id));
        };
        await define(work, { concurrency: 4 });
        const ids = Array.from({ length: BACKLOG }, (_, at) => `work-${at}`);
        await Promise.all(ids.map((id) => start(id)));
        await park(ids);
        await Promise.all(ids.map((id) => engine.signal(id, "word", 1)));
        for (const id of ids) await opened.ended(id);
        expect(ran.filter((each) => !each.endsWith("begun"))).toEqual(ids);
      });
    });
  });
}

function ownership(make: () => EngineUnderTest | Promise<EngineUnderTest>, owned: OwnedEngine): void {
  describe("ownership", () => {
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

    const next = async (
      from: EngineUnderTest | Promise<EngineUnderTest>,
      define: (engine: ports.Engine) => void,
    ): Promise<OpenEngine> => {
      const process = await openEngine(await from, define);
      opened.push(process);
      await process.engine.ready();
      return process;
    };
    const kind = (work: Work, options: Partial<ports.WorkOptions<object>> = {}) => {
      return (engine: ports.Engine) => engine.define("kind", work, { onInterrupted: "resume", ...options });
    };
    const begin = async (define: (engine: ports.Engine) => void): Promise<void> => {
      define(first.engine);
      await first.engine.ready();
    };
    const start = (id: string) => first.engine.start("kind", id, { of: id });
    const forever: Work = async ({ signal }) => untilAborted(signal);
    const note: Work = async ({ id }) => void ran.push(id);

    it("passes to the newest process: the earlier one is fenced, its work aborts, and it accepts no more", async () => {
      let reason: unknown;
      const gate = createGate();
      await begin(
        kind(async ({ id, step }) => {
          ran.push(id);
          await gate.passed;
          reason = await step("late", async () => ran.push("late step")).catch((error: unknown) => error);
          throw reason;
        }),
      );
      await start("one");
      await found(() => ran.length);
      const again = kind(async ({ id }) => (ran.push(`${id} again`), "second"));
      const process = await next(owned.again(under), again);
      expect(await process.ended("one")).toMatchObject({ output: "second" });
      gate.open();
      await found(() => reason);
      expect(reason).toBeInstanceOf(ports.EngineFenced);
      await expect(start("two")).rejects.toThrow(ports.EngineFenced);
      await expect(first.engine.cancel("one", "x")).rejects.toThrow(ports.EngineFenced);
      expect(await process.engine.status("one")).toMatchObject({ state: "completed", output: "second", attempt: 2 });
      expect(ran).toEqual(["one", "one again"]);
    });

    it("that was lost makes the condition `held` conflict, and nothing of its batch is written", async () => {
      const gate = createGate();
      let outcome: unknown;
      await begin(
        kind(async ({ id, held, step }) => {
          ran.push(id);
          await gate.passed;
          // With two stores, the process must notice the loss first.
          if (!owned.oneCommit) await step("late", async () => {}).catch(() => {});
          const late = [first.notes.write.put("note", { text: "late" }), held];
          outcome = await first.batch(late).catch((error: unknown) => error);
        }),
      );
      await start("one");
      await found(() => ran.length);
      const process = await next(
        owned.again(under),
        kind(async ({ held }) => {
          await process.batch([held, process.notes.write.put("note", { text: "second" })]);
        }),
      );
      expect(await process.ended("one")).toMatchObject({ state: "completed" });
      gate.open();
      expect(await found(() => outcome)).toBeInstanceOf(ports.RecordConflict);
      expect((await process.notes.get("note"))?.value.text).toBe("second");
    });

    describe("with work of a `close` kind that begins with its first batch of records", () => {
      const closed = async (id: string): Promise<void> => void ran.push(`closed ${id}`);
      const options = { onInterrupted: "close", beginsWithBatch: true, closed } as const;
      const writeNote = (process: OpenEngine, text: string) => (begun: ports.Write) =>
        process.batch([process.notes.write.put("note", { text }), begun]);

      it("executes it again if the process died before that batch, if engine and records share a store", async () => {
        if (!owned.oneCommit) return;
        await begin(kind(async ({ id, signal }) => (ran.push(id), untilAborted(signal)), options));
        await start("one");
        await found(() => ran.length);
        expect((await first.engine.status("one"))?.state).toBe("waiting");
        const opened = Promise.withResolvers<OpenEngine>();
        const process = await next(
          owned.again(under),
          kind(async ({ id, attempt, beginWith }) => {
            await beginWith(writeNote(await opened.promise, "second"));
            ran.push(`${id} attempt ${attempt}`);
          }, options),
        );
        opened.resolve(process);
        expect(await process.ended("one")).toMatchObject({ state: "completed", attempt: 1 });
        expect(ran).toEqual(["one", "one attempt 1"]);
        expect((await process.notes.get("note"))?.value.text).toBe("second");
      });

      it("closes it if the process died after that batch", async () => {
        await begin(
          kind(async ({ id, beginWith, signal }) => {
            await beginWith(writeNote(first, "first"));
            ran.push(id);
            return untilAborted(signal);
          }, options),
        );
        await start("one");
        await found(() => ran.length);
        expect((await first.engine.status("one"))?.state).toBe("executing");
        const process = await next(owned.again(under), kind(forever, options));
        expect(ran).toEqual(["one", "closed one"]);
        expect(await process.engine.status("one")).toMatchObject({ state: "interrupted" });
      });

      it("ends what never wrote that batch, and the next work of its key begins", async () => {
        await begin(kind(async ({ id }) => void ran.push(id), options));
        await start("one");
        await start("two");
        expect((await first.ended("one")).state).toBe("completed");
        expect((await first.ended("two")).state).toBe("completed");
      });

      it("accepts that batch again, because the answer to an earlier one may have been lost", async () => {
        await begin(
          kind(async ({ beginWith }) => {
            await beginWith(writeNote(first, "once"));
            await beginWith(writeNote(first, "twice"));
          }, options),
        );
        await start("one");
        expect(await first.ended("one")).toMatchObject({ state: "completed" });
        expect((await first.notes.get("note"))?.value.text).toBe("twice");
      });

      it("refuses that batch of a process that has lost its work, if engine and records share a store", async () => {
        if (!owned.oneCommit) return;
        const [gate, otherGate] = [createGate(), createGate()];
        let outcome: unknown;
        await begin(
          kind(async ({ id, beginWith }) => {
            ran.push(id);
            await gate.passed;
            outcome = await beginWith(writeNote(first, "late")).catch((error: unknown) => error);
          }, options),
        );
        await start("one");
        await found(() => ran.length);
        const process = await next(
          owned.again(under),
          kind(async ({ beginWith }) => {
            ran.push("again");
            await otherGate.passed;
            await beginWith(async (begun) => process.batch([process.notes.write.put("own", { text: "second" }), begun]));
          }, options),
        );
        await found(() => ran.length === 2);
        gate.open();
        await found(() => outcome);
        expect(await process.notes.get("note")).toBeUndefined();
        otherGate.open();
        expect(await process.ended("one")).toMatchObject({ state: "completed" });
        expect((await process.notes.get("own"))?.value.text).toBe("second");
      });

      it("refuses that batch for work that was cancelled before", async () => {
        const gate = createGate();
        let outcome: unknown;
        await begin(
          kind(async ({ id, beginWith }) => {
            ran.push(id);
            await gate.passed;
            outcome = await beginWith(writeNote(first, "late")).catch((error: unknown) => error);
          }, options),
        );
        await start("one");
        await found(() => ran.length);
        await first.engine.cancel("one", "enough");
        gate.open();
        expect(await first.ended("one")).toMatchObject({ state: "cancelled" });
        if (owned.oneCommit) expect(await found(() => outcome)).toBeInstanceOf(ports.RecordConflict);
      });
    });

    it.each(["resume", "close"] as const)(
      "does not execute again, and does not close, work of a `%s` kind whose end was written with its records",
      async (onInterrupted) => {
        if (!owned.oneCommit) return;
        const closed = async (id: string): Promise<void> => void ran.push(`closed ${id}`);
        const options = { onInterrupted, closed };
        await begin(
          kind(async ({ id, endWith, signal }) => {
            ran.push(id);
            await endWith((ended) => first.batch([first.notes.write.put("note", { text: "end" }), ended]));
            ran.push("ended");
            // The process dies before the engine learns that the function has ended.
            await untilAborted(signal);
          }, options),
        );
        await start("one");
        await found(() => ran.includes("ended"));
        const process = await next(
          owned.again(under),
          kind(async () => void ran.push("again"), options),
        );
        expect(await process.engine.status("one")).toMatchObject({ state: "completed", attempt: 1 });
        expect(ran).toEqual(["one", "ended"]);
        expect((await process.notes.get("note"))?.value.text).toBe("end");
      },
    );

    it("begins with the end of what is to be closed: `ready` has told it", async () => {
      const closed = async (id: string): Promise<void> => void ran.push(`closed ${id}`);
      const closing = { onInterrupted: "close", closed } as const;
      await begin(kind(async ({ id, signal }) => (ran.push(id), untilAborted(signal)), closing));
      await start("one");
      await found(() => ran.length);
      const process = await next(owned.again(under), kind(forever, closing));
      expect(ran).toEqual(["one", "closed one"]);
      expect(await process.engine.status("one")).toMatchObject({ state: "interrupted" });
    });

    it("of another owner is a standby until the lease has expired, and accepts nothing meanwhile", async () => {
      await begin(kind(forever));
      await start("one");
      const rival = await next(owned.rival(under), (engine) => {
        kind(note)(engine);
        engine.chore("sweep", { everyMs: owned.leaseMs * 10 }, async () => void ran.push("sweep"));
      });
      await expect(rival.engine.start("kind", "two", {})).rejects.toThrow(ports.EngineFenced);
      await rival.pass(owned.leaseMs - 1);
      await settled();
      expect(ran).toEqual([]);
      // The rival's own clock has advanced. The clock of the first process has not, so that process renewed no lease.
      await rival.pass(2);
      await rival.ended("one");
      expect(ran.toSorted()).toEqual(["one", "sweep"]);
      await expect(start("three")).rejects.toThrow(ports.EngineFenced);
      expect(await rival.engine.start("kind", "two", {})).toEqual({ duplicate: false });
    });

    it("that was lost ends the chores of its process", async () => {
      await begin((engine) => {
        kind(forever)(engine);
        engine.chore("sweep", { everyMs: 1000 }, async (signal) => {
          ran.push("begins");
          await untilAborted(signal).catch(() => {});
          ran.push("ends");
        });
      });
      await found(() => ran.length);
      await next(owned.again(under), kind(forever));
      await expect(start("one")).rejects.toThrow(ports.EngineFenced);
      await found(() => ran.length === 2);
      await first.pass(5000);
      await settled();
      expect(ran).toEqual(["begins", "ends"]);
    });

    it("of another owner is free at once where the process before has closed", async () => {
      await begin(kind(forever));
      await start("one");
      await first.close();
      const rival = await next(owned.rival(under), kind(note));
      await rival.ended("one");
      expect(ran).toEqual(["one"]);
    });
  });
}
