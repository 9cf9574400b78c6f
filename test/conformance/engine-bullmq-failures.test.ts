import { setTimeout as wait } from "node:timers/promises";
import { ports } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ClusterPlace } from "../harness/engine-cluster.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { hasPostgresServer, postgresServer } from "../harness/postgres-server.ts";
import { hasRedisServer, ownRedis, type OwnRedis, redisPlace } from "../harness/redis.ts";
import {
  atNextCommit,
  type BullmqProcesses,
  createBullmqProcesses,
  type OpenedProcess,
  type Work,
} from "../harness/bullmq-processes.ts";
import { createGate, found, settled } from "./engine-subject.ts";

const database = await postgresDatabase();
const redis = await redisPlace();
afterAll(() => database?.drop());

describe.runIf(database && redis)("engine/bullmq", () => {
  let stores = 0;
  let place: ClusterPlace;
  let opened: BullmqProcesses | undefined;
  let processes: readonly OpenedProcess[];
  let ran: string[];
  beforeEach(() => {
    const { url, prefix } = redis!();
    place = { postgresUrl: database!.url, schema: `f${++stores}`, redisUrl: url, prefix };
    [opened, processes, ran] = [undefined, [], []];
  });
  afterEach(() => opened?.close());

  const open = (...given: Parameters<BullmqProcesses["open"]>) => {
    opened ??= createBullmqProcesses(place, ran);
    processes = opened.all;
    return opened.open(...given);
  };
  /** Work that says that it began, and ends when the gate opens. */
  const gated = () => {
    const gate = createGate();
    const work: Work = async ({ id, step, attempt }, at) => {
      ran.push(`${at} ${id} ${attempt}`);
      await gate.passed;
      await step("done", async () => ran.push(`${id} done`));
    };
    return { gate, work };
  };
  describe("a commit whose answer is lost", () => {
    it("may have accepted work: the same ID says so, and the work executes once", async () => {
      const first = await open(async ({ id, attempt }) => void ran.push(`${id} ${attempt}`));
      void atNextCommit(first, "answer lost");
      await expect(first.engine.start("resumed", "one", {})).rejects.toThrow(ports.EngineUnavailable);
      expect(await first.engine.start("resumed", "one", {})).toEqual({ duplicate: true });
      expect((await first.ended("one")).state).toBe("completed");
      expect(ran).toHaveLength(1);
    });

    it("may have begun work: it executes once, and is not closed", async () => {
      const first = await open(async ({ id }) => void ran.push(id), {}, { begins: "anywhere" });
      let commits = 0;
      first.postgres.fate = (sent) => (sent.includes("COMMIT\0") && ++commits === 2 ? "answer lost" : "through");
      await first.engine.start("closed", "one", {});
      expect(await first.ended("one")).toMatchObject({ state: "completed", attempt: 1 });
      expect(ran).toEqual(["one"]);
      expect(commits).toBeGreaterThan(2);
    });
  });

  it("a process that thaws inside the commit that begins a work loses it to another one, and the work executes there", async () => {
    const { gate, work } = gated();
    const first = await open(work, { leaseMs: 1500 }, { concurrency: 1 });
    await first.engine.start("resumed", "zero", {});
    await found(() => ran.length);
    const second = await open(work, { leaseMs: 1500 });
    await first.engine.drain(0).catch(() => {});
    ran.splice(0);
    // The second begins it, and is held before its commit for longer than its lease.
    void atNextCommit(second, "hold");
    const third = await open(work, { leaseMs: 1500 });
    await first.engine.start("resumed", "one", {});
    await found(() => ran.some((each) => each.startsWith("2 one")));
    second.postgres.heal();
    gate.open();
    expect((await third.ended("one")).state).toBe("completed");
    expect(ran.filter((each) => each === "one done")).toHaveLength(1);
  });

  it("a process that does not execute accepts work, signals and cancels it, and others execute it", async () => {
    const accepts = await open(async () => void ran.push("here"), { executes: false });
    const work: Work = async ({ waitFor }, at) => void ran.push(`${at} ${await waitFor("word")}`);
    expect(await accepts.engine.start("resumed", "one", {})).toEqual({ duplicate: false });
    await settled();
    expect(ran).toEqual([]);
    await open(work);
    await found(async () => (await accepts.engine.status("one"))?.state === "executing");
    expect(await accepts.engine.signal("one", "word", "there")).toBe(true);
    expect((await accepts.ended("one")).state).toBe("completed");
    await accepts.engine.start("closed", "two", {});
    await accepts.engine.cancel("two", "enough");
    expect((await accepts.ended("two")).state).toBe("cancelled");
    expect(ran).toEqual(["1 there"]);
  });

  it("works go on when all sessions of the database end at once: none is interrupted", async () => {
    const { gate, work } = gated();
    for (let at = 0; at < 3; at++) await open(work);
    for (const [at, { engine }] of processes.entries()) {
      await engine.start("resumed", `resumed-${at}`, {});
      await engine.start("closed", `closed-${at}`, {});
    }
    await found(() => ran.length === 6);
    for (const { postgres } of processes) postgres.reset();
    await wait(1500);
    gate.open();
    const ids = [0, 1, 2].flatMap((at) => [`resumed-${at}`, `closed-${at}`]);
    for (const id of ids) expect(await processes[0]!.ended(id)).toMatchObject({ state: "completed", attempt: 1 });
  });

  describe.runIf(hasRedisServer())("with a Redis that fails", () => {
    let own: OwnRedis;
    beforeEach(async () => {
      own = await ownRedis();
      place = { ...place, redisUrl: own.url };
    });
    afterEach(() => own[Symbol.asyncDispose]());

    it("offers waiting work again when Redis was wiped, and disturbs no execution", async () => {
      const { gate, work } = gated();
      for (let at = 0; at < 2; at++) await open(work, {}, { concurrency: 2 });
      const ids = Array.from({ length: 12 }, (_, at) => `work-${at}`);
      for (const id of ids) await processes[0]!.engine.start("closed", id, {});
      await found(() => ran.length === 4);
      await own.ask("FLUSHALL");
      gate.open();
      for (const id of ids) expect(await processes[1]!.ended(id)).toMatchObject({ state: "completed", attempt: 1 });
      expect(ran).toHaveLength(24);
    });

    it("begins work with a free seat while Redis is away, and the rest of it, too", async () => {
      const { gate, work } = gated();
      for (let at = 0; at < 2; at++) await open(work, {}, { concurrency: 2 });
      await own.kill();
      const ids = Array.from({ length: 8 }, (_, at) => `work-${at}`);
      for (const id of ids) await processes[0]!.engine.start("resumed", id, {});
      await found(() => ran.length >= 2);
      gate.open();
      for (const id of ids) expect((await processes[0]!.ended(id)).state).toBe("completed");
      await own.start();
      await processes[1]!.engine.start("closed", "after", {});
      expect((await processes[0]!.ended("after")).state).toBe("completed");
    });

    it("closes while Redis answers nothing", async () => {
      const { work } = gated();
      const first = await open(work);
      await first.engine.start("resumed", "one", {});
      own.freeze();
      await first.close();
      own.thaw();
    });

    it("hears of signals and cancellations while Redis is away", async () => {
      const work: Work = async ({ waitFor }) => waitFor("word");
      for (let at = 0; at < 2; at++) await open(work, { parkAfterMs: 600_000 });
      await processes[0]!.engine.start("resumed", "one", {});
      await processes[0]!.engine.start("resumed", "two", {});
      await found(async () => (await processes[1]!.engine.status("two"))?.state === "executing");
      await own.kill();
      expect(await processes[1]!.engine.signal("one", "word", "there")).toBe(true);
      expect(await processes[1]!.engine.cancel("two", "enough")).toBe(true);
      expect(await processes[1]!.ended("one")).toMatchObject({ output: "there" });
      expect(await processes[1]!.ended("two")).toMatchObject({ state: "cancelled" });
    });
  });

  it.runIf(hasPostgresServer())(
    "work waits while PostgreSQL is away for longer than the lease, and none is interrupted",
    async () => {
      await using server = await postgresServer();
      place = { ...place, postgresUrl: server.url };
      const { gate, work } = gated();
      for (let at = 0; at < 2; at++) await open(work, { leaseMs: 1500 });
      for (const [at, { engine }] of processes.entries()) {
        await engine.start("resumed", `resumed-${at}`, {});
        await engine.start("closed", `closed-${at}`, {});
      }
      await found(() => ran.length === 4);
      await server.stop("immediate");
      gate.open();
      await expect(processes[0]!.engine.start("resumed", "refused", {})).rejects.toThrow(ports.EngineUnavailable);
      await wait(2500);
      await server.start();
      for (const id of ["resumed-0", "resumed-1", "closed-0", "closed-1"]) {
        const status = await found(() => processes[0]!.engine.status(id).catch(() => undefined));
        expect(status.attempt).toBe(1);
        expect(await processes[0]!.ended(id)).toMatchObject({ state: "completed", attempt: 1 });
      }
      await opened!.close();
      opened = undefined;
    },
  );
});
