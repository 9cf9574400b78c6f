import { setTimeout as sleep } from "node:timers/promises";
import { type Adapter, createApp, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { found } from "./engine-subject.ts";

/** The adapter under test with all that it needs, on stores that stay, and the time of its clock. */
export interface SchedulesUnderTest {
  /** One process. Its schedules are looked at as time passes. */
  process(): readonly Adapter[];
  /** Pass time in all processes. */
  pass(ms: number): Promise<void>;
  now(): number;
  /** Set the clock of all processes ahead, or back, without passing time. */
  setClock(ms: number): void;
  /** Ends what all processes share. */
  close(): Promise<void>;
}

const MINUTE_MS = 60_000;

/** The law of schedules, as vitest tests. `make` is called once per test. */
export function schedulesConformance(name: string, make: () => Promise<SchedulesUnderTest>): void {
  describeSuite(`schedules port: ${name}`, () => {
    let under: SchedulesUnderTest;
    let started: string[];
    let list: ports.Schedule[];
    let fails: boolean;
    let endsAtOnce: boolean;
    let isListable: boolean;
    let looks: number;
    /** What goes on, as its start was noted. */
    let going: Set<string>;
    let stopped: string[];
    /** How starts ended, as they were noted. The others are open. */
    let outcomes: Map<string, "completed" | "failed" | "stopped">;
    const apps: Awaited<ReturnType<typeof createApp>>[] = [];
    beforeEach(async () => {
      under = await make();
      started = [];
      list = [{ id: "each-minute", timing: { everyMs: MINUTE_MS } }];
      fails = false;
      endsAtOnce = false;
      isListable = true;
      looks = 0;
      going = new Set();
      stopped = [];
      outcomes = new Map();
    });
    afterEach(async () => {
      for (const app of apps.splice(0)) await app.close();
      await under.close();
    });

    const open = async (): Promise<ports.Schedules> => {
      const app = await createApp({
        name: "schedules-conformance",
        adapters: [...under.process()],
        plugins: [],
      });
      apps.push(app);
      const port = app.port(ports.schedules);
      port.define({
        name: "test",
        async list() {
          looks++;
          if (!isListable) throw new Error("cannot be listed");
          return list;
        },
        async start(id, plannedAt) {
          if (fails) throw new Error("not now");
          started.push(`${id} ${plannedAt}`);
          if (!endsAtOnce) going.add(`${id} ${plannedAt}`);
        },
        isOpen: async (id, plannedAt) => going.has(`${id} ${plannedAt}`),
        async stop(id, plannedAt) {
          if (going.delete(`${id} ${plannedAt}`)) stopped.push(`${id} ${plannedAt}`);
        },
        async outcome(id, plannedAt) {
          const status = outcomes.get(`${id} ${plannedAt}`);
          return { runId: `run ${plannedAt}`, status: status ?? "open", ...(status && { at: plannedAt + 5 }) };
        },
      });
      return port;
    };
    const pass = async (ms: number) => {
      await under.pass(ms);
      // The last look may still write. Two more looks begin only when it has ended.
      for (const before = looks; apps.length > 0 && looks < before + 2;) {
        await under.pass(1000);
        await sleep(2);
      }
    };
    const planned = (id: string, ...times: number[]) => times.map((time) => `${id} ${time}`);
    const nextMinute = () => (Math.floor(under.now() / MINUTE_MS) + 1) * MINUTE_MS;

    it("starts each planned time once, and starts no time before the schedule was first seen", async () => {
      await open();
      await pass(2000);
      const first = nextMinute();
      await pass(3 * MINUTE_MS);
      await found(() => started.length >= 3);
      expect(started).toEqual(planned("each-minute", first, first + MINUTE_MS, first + 2 * MINUTE_MS));
    });

    it("starts nothing twice in the next process, and catches up the newest of what was missed", async () => {
      await open();
      await pass(2000);
      const first = nextMinute();
      await pass(MINUTE_MS);
      await found(() => started.length === 1);
      await apps.pop()!.close();
      await pass(10 * MINUTE_MS);
      await open();
      await pass(2000);
      await found(() => started.length >= 2);
      const newest = nextMinute() - MINUTE_MS;
      expect(started[0]).toBe(`each-minute ${first}`);
      // The last minute is missed or still timely, depending on its second.
      expect(started.slice(1).at(-1)).toBe(`each-minute ${newest}`);
      expect(started.length).toBeLessThanOrEqual(3);
      expect(new Set(started).size).toBe(started.length);
    });

    it("says how the newest starts ended, and counts failures since the last success, also in the next process", async () => {
      const schedules = await open();
      const ends = async (port = schedules) => {
        const { ended, failures } = await port.state("test", list[0]!);
        return { ended, failures };
      };
      expect(await ends()).toEqual({ ended: undefined, failures: 0 });
      await pass(2000);
      const first = nextMinute();
      await pass(5 * MINUTE_MS);
      await found(() => started.length >= 5);
      const at = (index: number) => first + index * MINUTE_MS;
      const end = (index: number, status: "completed" | "failed" | "stopped") => outcomes.set(`each-minute ${at(index)}`, status);
      const endOf = (index: number, status: string) => ({
        ...{ runId: `run ${at(index)}`, status },
        ...{ at: at(index) + 5, plannedAt: at(index) },
      });
      end(0, "failed");
      end(1, "completed");
      expect(await ends()).toEqual({ ended: endOf(1, "completed"), failures: 0 });
      end(2, "failed");
      end(3, "failed");
      expect(await ends()).toEqual({ ended: endOf(3, "failed"), failures: 2 });
      end(4, "stopped");
      expect(await ends()).toEqual({ ended: endOf(4, "stopped"), failures: 2 });
      await apps.pop()!.close();
      expect(await ends(await open())).toEqual({ ended: endOf(4, "stopped"), failures: 2 });
    });

    it("counts the planned times that were missed and not caught up", async () => {
      list = [{ id: "some", timing: { everyMs: MINUTE_MS }, catchUp: 2 }];
      await open();
      await pass(2000);
      await pass(MINUTE_MS);
      await found(() => started.length >= 1);
      await apps.pop()!.close();
      await pass(10 * MINUTE_MS);
      const again = await open();
      await pass(2000);
      await found(() => started.length >= 3);
      const { missed } = await again.state("test", list[0]!);
      const late = Math.min(...started.slice(1).map((start) => Number(start.split(" ")[1])));
      expect(missed?.last).toBe(late - MINUTE_MS);
      // The last minute is missed or still timely, depending on its second.
      expect([7, 8]).toContain(missed?.count);
    });

    it("catches up nothing, or more, as the schedule says", async () => {
      list = [
        { id: "none", timing: { everyMs: MINUTE_MS }, catchUp: 0 },
        { id: "three", timing: { everyMs: MINUTE_MS }, catchUp: 3 },
      ];
      await open();
      await pass(2000);
      await apps.pop()!.close();
      await pass(10 * MINUTE_MS + 30_000);
      started = [];
      await open();
      await pass(2000);
      await found(() => started.filter((each) => each.startsWith("three")).length >= 3);
      expect(started.filter((each) => each.startsWith("none")).length).toBeLessThanOrEqual(1);
      expect(started.filter((each) => each.startsWith("three")).length).toBeLessThanOrEqual(4);
    });

    it("tries a start again that failed, with the same planned time", async () => {
      await open();
      await pass(2000);
      const first = nextMinute();
      fails = true;
      await pass(MINUTE_MS);
      fails = false;
      await pass(5000);
      await found(() => started.length);
      expect(started).toEqual(planned("each-minute", first));
    });

    it("takes changes of the list at once: what is removed ends, what is changed begins anew, what is broken harms no other", async () => {
      await open();
      await pass(2000);
      list = [
        { id: "broken", timing: { cron: "never" } },
        { id: "other", timing: { cron: "*/2 * * * *" } },
      ];
      await pass(2000);
      await pass(4 * MINUTE_MS);
      await found(() => started.length >= 2);
      expect(started.every((each) => each.startsWith("other"))).toBe(true);
      expect(started.length).toBe(2);
    });

    it("starts nothing while a schedule is paused, and does not catch that up", async () => {
      const port = await open();
      await pass(2000);
      await port.pause("test", "each-minute", true);
      expect(await port.state("test", list[0]!)).toMatchObject({ isPaused: true, next: [] });
      await pass(5 * MINUTE_MS);
      await port.pause("test", "each-minute", false);
      expect(started).toEqual([]);
      const first = nextMinute();
      const { isPaused, next } = await port.state("test", list[0]!);
      expect([isPaused, next[0], next.length]).toEqual([false, first, 5]);
      await pass(MINUTE_MS);
      await found(() => started.length);
      expect(started).toEqual(planned("each-minute", first));
      expect((await port.state("test", list[0]!)).last).toBe(first);
    });

    it.each(["in one process", "across a restart"])(
      "begins a schedule anew that is listed again, and keeps its pause: %s",
      async (how) => {
        const kept = list;
        const paused = { id: "paused", timing: { everyMs: MINUTE_MS } };
        list = [...kept, paused];
        const port = await open();
        await pass(2000);
        await port.pause("test", "paused", true);
        await pass(MINUTE_MS);
        await found(() => started.length === 1);
        list = [];
        await pass(10 * MINUTE_MS);
        if (how === "across a restart") {
          await apps.pop()!.close();
          await open();
          await pass(2000);
        }
        started = [];
        list = [...kept, paused];
        await pass(2000);
        const first = nextMinute();
        await pass(MINUTE_MS);
        await found(() => started.length);
        // Nothing is caught up.
        expect(started).toEqual(planned("each-minute", first));
        expect(await apps.at(-1)!.port(ports.schedules).state("test", paused)).toMatchObject({ isPaused: true });
      },
    );

    it("keeps the progress of a source that cannot be listed", async () => {
      await open();
      await pass(2000);
      const first = nextMinute();
      isListable = false;
      await pass(MINUTE_MS);
      expect(started).toEqual([]);
      isListable = true;
      await pass(2000);
      await found(() => started.length);
      expect(started).toEqual(planned("each-minute", first));
    });

    it("starts the source also while an earlier start goes on, with the overlap allow, which is the default", async () => {
      await open();
      await pass(2000);
      await pass(3 * MINUTE_MS);
      await found(() => started.length >= 3);
      expect([going.size, stopped]).toEqual([3, []]);
    });

    it("starts planned times one after another in their order, also over a restart, with the overlap queue", async () => {
      list = [{ id: "patient", timing: { cron: "* * * * *" }, overlap: "queue" }];
      await open();
      await pass(2000);
      const first = nextMinute();
      for (let minute = 0; minute < 3; minute++) await pass(MINUTE_MS);
      expect(started).toEqual(planned("patient", first));
      await apps.pop()!.close();
      await open();
      for (const at of [1, 2]) {
        going.clear();
        await pass(2000);
        expect(started).toEqual(planned("patient", ...[0, 1, 2].slice(0, at + 1).map((minute) => first + minute * MINUTE_MS)));
      }
      expect(going.size).toBe(1);
    });

    it("starts a waiting planned time again that another process decided and did not make", async () => {
      list = [{ id: "patient", timing: { cron: "* * * * *" }, overlap: "queue" }];
      await open();
      await pass(2000);
      const first = nextMinute();
      for (let minute = 0; minute < 2; minute++) await pass(MINUTE_MS);
      fails = true;
      going.clear();
      await pass(5000);
      await apps.pop()!.close();
      fails = false;
      // Decided anew, this would prevent the start.
      going.add(`patient ${first}`);
      await open();
      await pass(2000);
      expect(started).toEqual(planned("patient", first, first + MINUTE_MS));
    });

    it("lets at most 100 planned times of a cron expression wait, and starts none of the others", async () => {
      list = [{ id: "patient", timing: { cron: "* * * * *" }, overlap: "queue", catchUp: 200 }];
      await open();
      await pass(2000);
      await pass(MINUTE_MS);
      await found(() => started.length === 1);
      under.setClock(120 * MINUTE_MS);
      await pass(2000);
      expect(started.length).toBe(1);
      endsAtOnce = true;
      going.clear();
      await pass(2000);
      const first = Number(started[0]!.split(" ")[1]);
      const waited = Array.from({ length: 101 }, (_, at) => first + at * MINUTE_MS);
      expect(started.slice(0, waited.length)).toEqual(planned("patient", ...waited));
      expect(started.slice(waited.length)).not.toContain(`patient ${first + 101 * MINUTE_MS}`);
    });

    it("lets only the newest planned time of an interval wait, so that it does not fall behind", async () => {
      list = [{ id: "patient", timing: { everyMs: 1000 }, overlap: "queue" }];
      const port = await open();
      // In pieces, so that no planned time is missed.
      for (let piece = 0; piece < 3; piece++) await pass(10_000);
      expect(started.length).toBe(1);
      expect((await port.state("test", list[0]!)).waiting).toBe(1);
      going.clear();
      await pass(1000);
      await found(() => started.length >= 2);
      const [first, second] = started.map((each) => Number(each.split(" ")[1]));
      expect(second! - first!).toBeGreaterThanOrEqual(25_000);
    });

    it("starts no planned time after a pause that waited before it", async () => {
      list = [{ id: "patient", timing: { everyMs: MINUTE_MS }, overlap: "queue" }];
      const port = await open();
      await pass(2000);
      const first = nextMinute();
      for (let minute = 0; minute < 2; minute++) await pass(MINUTE_MS);
      await port.pause("test", "patient", true);
      await port.pause("test", "patient", false);
      going.clear();
      await pass(2000);
      expect(started).toEqual(planned("patient", first));
    });

    it("leaves planned times out while the start before them goes on, with the overlap skip", async () => {
      list = [{ id: "careful", timing: { everyMs: MINUTE_MS }, overlap: "skip" }];
      const port = await open();
      await pass(2000);
      const first = nextMinute();
      await pass(3 * MINUTE_MS);
      expect(started).toEqual(planned("careful", first));
      going.clear();
      const second = nextMinute();
      await pass(MINUTE_MS);
      await found(() => started.length >= 2);
      expect(started).toEqual(planned("careful", first, second));
      expect((await port.state("test", list[0]!)).last).toBe(second);
    });

    it("stops the start before, and then starts the source, with the overlap cancel; of missed times only the newest", async () => {
      list = [{ id: "newest", timing: { everyMs: MINUTE_MS }, overlap: "cancel", catchUp: 5 }];
      await open();
      await pass(2000);
      const first = nextMinute();
      await pass(2 * MINUTE_MS);
      await found(() => started.length >= 2);
      expect([started, stopped]).toEqual([planned("newest", first, first + MINUTE_MS), planned("newest", first)]);
      await apps.pop()!.close();
      await pass(5 * MINUTE_MS);
      await open();
      await pass(2000);
      await found(() => started.length >= 3);
      expect(started.at(-1)).toBe(`newest ${nextMinute() - MINUTE_MS}`);
      expect(stopped).toEqual(planned("newest", first, first + MINUTE_MS));
      expect(going.size).toBe(1);
    });

    it("makes a start that another process decided and did not make, and does not decide it again", async () => {
      list = [{ id: "careful", timing: { everyMs: MINUTE_MS }, overlap: "skip" }];
      await open();
      await pass(2000);
      const first = nextMinute();
      await pass(MINUTE_MS);
      await found(() => started.length === 1);
      going.clear();
      fails = true;
      await pass(MINUTE_MS);
      await apps.pop()!.close();
      fails = false;
      // Decided anew, this would prevent the start.
      going.add(`careful ${first}`);
      await open();
      await pass(2000);
      await found(() => started.length >= 2);
      expect(started).toEqual(planned("careful", first, first + MINUTE_MS));
    });

    it("starts planned times again as soon as a clock is right that was ahead, and none twice that was started then", async () => {
      await open();
      await pass(2000);
      const hours = 600 * MINUTE_MS;
      under.setClock(hours);
      await pass(2 * MINUTE_MS);
      await found(() => started.length >= 2);
      const early = [...started];
      under.setClock(-hours);
      const first = nextMinute();
      await pass(2 * MINUTE_MS);
      await found(() => started.length > early.length);
      expect(started.slice(early.length)).toContain(`each-minute ${first}`);
      under.setClock(hours - 4 * MINUTE_MS);
      await pass(8 * MINUTE_MS);
      await found(() => started.includes(`each-minute ${nextMinute() - MINUTE_MS}`));
      expect(new Set(started).size).toBe(started.length);
    });

    it("refuses an overlap that the source does not support", async () => {
      const port = await open();
      port.define({ name: "plain", list: async () => [], start: async () => {} });
      const schedule: ports.Schedule = { id: "x", timing: { everyMs: MINUTE_MS }, overlap: "skip" };
      await expect(port.state("plain", schedule)).rejects.toThrow(RangeError);
    });

    it("refuses a timing that is not valid, and a second source of one name", async () => {
      const port = await open();
      await expect(port.state("test", { id: "x", timing: { cron: "61 * * * *" } })).rejects.toThrow(RangeError);
      expect(() => port.define({ name: "test", list: async () => [], start: async () => {} })).toThrow(TypeError);
    });
  });
}
