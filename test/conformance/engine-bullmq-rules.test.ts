import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import { memoryBus } from "@portico/adapters/bus/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { ClusterEngine } from "@portico/cluster/engine/cluster/cluster-engine";
import type { Offer } from "@portico/cluster/engine/cluster/work-row";
import { openClusterJournal } from "@portico/cluster/engine/cluster/cluster-journal";
import type { Dispatcher, OfferConsumer } from "@portico/cluster/engine/cluster/dispatcher";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { postgresStoreOf } from "@portico/cluster/records/postgres/store";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports } from "@portico/core";
import { Redis } from "ioredis";
import { Client } from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ClusterPlace } from "../harness/engine-cluster.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { hasPostgresServer, postgresServer, type PostgresServer } from "../harness/postgres-server.ts";
import { redisPlace } from "../harness/redis.ts";
import { openTcpLine } from "../harness/tcp-line.ts";
import { atNext, atNextCommit, type BullmqProcesses, createBullmqProcesses, type Work } from "../harness/bullmq-processes.ts";
import { createGate, found } from "./engine-subject.ts";

/** So long that no lease ends in a test by itself. */
const LONG_LEASE_MS = 30_000;
/** Several looks at the other processes. */
const LOOKS_MS = 1500;
/** In the statement that looks at the other processes, and in the one that takes a lease. */
const LOOK = "pg_try_advisory_lock(";
const TAKE = "pg_try_advisory_xact_lock(";

const database = await postgresDatabase();
const redis = await redisPlace();
afterAll(() => database?.drop());

describe.runIf(database && redis)("the rules of engine/bullmq", () => {
  let stores = 0;
  let place: ClusterPlace;
  let told: string[];
  let opened: BullmqProcesses | undefined;
  beforeEach(() => {
    const { url, prefix } = redis!();
    place = { postgresUrl: database!.url, schema: `r${++stores}`, redisUrl: url, prefix };
    [opened, told] = [undefined, []];
  });
  afterEach(() => opened?.close());

  const open = (...given: Parameters<BullmqProcesses["open"]>) => {
    opened ??= createBullmqProcesses(place, told);
    return opened.open(...given);
  };
  const query = async (sql: string): Promise<readonly any[]> => {
    const client = new Client({ connectionString: place.postgresUrl });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  };
  const table = (name: string) => `"${place.schema}"."_engine_${name}"`;
  const stateOf = async (id: string): Promise<string> =>
    (await query(`SELECT state FROM ${table("work")} WHERE id = '${id}'`))[0].state;
  const leaseOf = async ({ engine }: { readonly engine: ports.Engine }): Promise<number> =>
    Number((await query(`SELECT lease FROM ${table("processes")} WHERE process = '${engine.process}'`))[0].lease);
  /** Whether a session has the lock of a lease. */
  const isLocked = async (lease: number): Promise<boolean> =>
    (
      await query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = ${lease} AND granted
      AND classid::bigint::bit(32)::int = ('x' || substr(encode(sha256('portico engine ${place.schema}'), 'hex'), 1, 8))::bit(32)::int`)
    ).length > 0;
  /** No process sweeps. */
  const stopSweeps = () => query(`UPDATE ${table("sweep")} SET last = 'infinity'`);
  /** Work that says that it began, and ends when the gate opens. */
  const gated = () => {
    const gate = createGate();
    const work: Work = async ({ id, attempt, step }, at) => {
      told.push(`${at} ${id} ${attempt}`);
      await gate.passed;
      await step("done", async () => void told.push(`${id} done`));
    };
    return { gate, work };
  };

  it("runs a chore again that is due much later than its interval, because a clock was ahead", async () => {
    const interval: ports.ChoreOptions = { everyMs: 60_000 };
    await open(
      async () => {},
      {},
      {},
      (engine) => engine.chore("look", interval, async () => void told.push("looked")),
    );
    const isReleased = async () => (await query(`SELECT owner FROM ${table("chores")} WHERE name = 'look'`))[0].owner === null;
    await found(() => told.length === 1);
    await expect.poll(isReleased).toBe(true);
    await query(`UPDATE ${table("chores")} SET due = due + 86400000 WHERE name = 'look'`);
    await found(() => told.length === 2);
  });

  describe("the journal", () => {
    /** A journal of one process, beside those of others. */
    const openJournal = async (url = place.postgresUrl) => {
      const app = await createApp({ name: "journal", adapters: [postgresRecords({ url, schema: place.schema })] });
      const records = app.port(ports.records);
      const journal = await openClusterJournal(postgresStoreOf(records)!);
      return { ...journal, records, [Symbol.asyncDispose]: app.close };
    };
    const addLeases = (...leases: readonly number[]) =>
      query(
        `INSERT INTO ${table("processes")} SELECT lease, 'process', 'server', 'infinity' FROM unnest('{${leases.join()}}'::int[]) AS lease`,
      );
    const workOf = (id: string, beginsAt?: number) => ({
      kind: "kind",
      id,
      key: "key",
      input: "{}",
      acceptedAt: 0,
      keyLimit: 1,
      beginsAt,
    });

    it("writes nothing of an execution whose work another execution has, while that one goes on", async () => {
      await using journal = await openJournal();
      await addLeases(1, 2);
      const first = (await journal.accept(workOf("one", 1), []))!.begun!;
      const [offer] = await journal.loseEach(1, [first]);
      const second = (await journal.begin(offer!, 2, false))!;
      const note = { kind: "step", name: "late", number: 0, state: "done", value: "1" } as const;
      const of = { kind: "kind", key: "key", keyLimit: 1 };
      await expect(journal.note(first, note)).rejects.toThrow(ports.EngineFenced);
      await expect(journal.park(first, { until: 1, awaited: [], known: 0, order: undefined })).rejects.toThrow(
        ports.EngineFenced,
      );
      await expect(journal.end(first, of, { state: "completed", endedAt: 1, output: "1" }, 1)).rejects.toThrow(
        ports.EngineFenced,
      );
      await expect(journal.records.batch([journal.held(first)])).rejects.toThrow(ports.RecordConflict);
      await journal.records.batch([journal.held(second)]);
      await journal.note(second, { ...note, value: "2" });
      expect(await query(`SELECT value FROM ${table("notes")} WHERE name = 'late'`)).toEqual([{ value: "2" }]);
      await journal.end(second, of, { state: "completed", endedAt: 2, output: "2" }, 1);
      expect(await journal.find("one")).toMatchObject({ state: "completed", attempt: 2, output: "2" });
    });

    it("gives an execution to a process only once, unless its answer was lost while it had the work", async () => {
      await using journal = await openJournal();
      await addLeases(1, 2);
      const { offers } = (await journal.accept(workOf("one"), []))!;
      const first = await journal.begin(offers[0]!, 1, false);
      expect(await journal.begin(offers[0]!, 1, false)).toEqual(first);
      expect(await journal.begin(offers[0]!, 2, false)).toBeUndefined();
    });

    it("keeps the lease on which a commit relies until that commit has ended", async () => {
      await using line = await openTcpLine(Number(new URL(place.postgresUrl).port || 5432));
      const url = Object.assign(new URL(place.postgresUrl), { hostname: "127.0.0.1", port: `${line.port}` });
      await using journal = await openJournal(url.href);
      await addLeases(1);
      const isHeld = atNext(line, "COMMIT\0", "hold");
      const accepting = journal.accept(workOf("one", 1), []);
      await isHeld;
      // As a process that takes a lease away does.
      const take = () => query(`SELECT lease FROM ${table("processes")} WHERE lease = 1 FOR UPDATE SKIP LOCKED`);
      expect(await take()).toEqual([]);
      line.heal();
      expect((await accepting)?.begun).toMatchObject({ id: "one" });
      expect(await take()).toHaveLength(1);
      await query(`DELETE FROM ${table("processes")}`);
      const { offers, begun } = (await journal.accept({ ...workOf("two", 1), key: "other" }, []))!;
      expect(begun).toBeUndefined();
      await expect(journal.begin(offers[0]!, 1, false)).rejects.toThrow(ports.EngineFenced);
    });
  });

  it("queues work of a key that is accepted while the last work of the key ends", async () => {
    const { gate, work } = gated();
    const first = await open(work);
    await first.engine.start("resumed", "one", {}, { key: "key" });
    await found(() => told.length);
    const second = await open(work, { executes: false });
    const isHeld = atNextCommit(second, "hold");
    const accepted = second.engine.start("resumed", "two", {}, { key: "key" });
    await isHeld;
    gate.open();
    // The end waits for the acceptance. Without that, it does not see the work.
    const isWaiting = async () =>
      (await stateOf("one")) === "completed" ||
      (
        await query(
          "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
      ).length;
    await found(isWaiting);
    second.postgres.heal();
    await accepted;
    await first.ended("one");
    expect(await stateOf("two")).not.toBe("queued");
    await first.ended("two");
  });

  it("logs no failure of a work that it has lost without knowing it, and logs others", async () => {
    const gate = createGate();
    const { engine, telemetry, batch, ended } = await open(
      async ({ id, held }) => {
        if (id === "broken") throw new Error("broken");
        told.push("begun");
        await gate.passed;
        await expect(batch([held])).rejects.toThrow(ports.RecordConflict);
        told.push("refused");
        await batch([held]);
      },
      { leaseMs: LONG_LEASE_MS },
    );
    const failures = () => telemetry.lines.flatMap(({ message, fields }) => (message === "Work failed" ? [fields.id] : []));
    await engine.start("resumed", "lost", {});
    await found(() => told.includes("begun"));
    await query(`UPDATE ${table("work")} SET fence = fence + 1 WHERE id = 'lost'`);
    gate.open();
    await found(() => told.includes("refused"));
    await engine.start("resumed", "broken", {});
    expect(await ended("broken")).toMatchObject({ state: "failed" });
    await found(() => failures().includes("broken"));
    expect(failures()).toEqual(["broken"]);
  });

  it("gives work with an expired lease to another process, also without a notification of its end", async () => {
    const { gate, work } = gated();
    const first = await open(work, { leaseMs: LONG_LEASE_MS });
    await first.engine.start("resumed", "one", {});
    await found(() => told.length);
    const second = await open(work, { leaseMs: LONG_LEASE_MS });
    // A third one took the lease, and died before it gave the works to others.
    await query(`DELETE FROM ${table("processes")} WHERE process = '${first.engine.process}'`);
    first.postgres.cut();
    await found(() => told.includes("1 one 2"));
    gate.open();
    expect(await second.ended("one")).toMatchObject({ state: "completed", attempt: 2 });
  });

  describe("a process that loses its connection", () => {
    /** Two processes, of which the second executes a work that may not be interrupted. */
    const openTwo = async (leaseMs = LONG_LEASE_MS) => {
      const { gate, work } = gated();
      const first = await open(work, { leaseMs });
      const second = await open(work, { leaseMs });
      await second.engine.start("closed", "one", {});
      await found(() => told.length);
      const lease = await leaseOf(second);
      const [executing, other] = told[0]!.startsWith("1") ? [second, first] : [first, second];
      return { gate, executing, other, lease: executing === second ? lease : await leaseOf(first) };
    };
    /** The process that executes has a connection again, while the other one's statement is held. */
    const keepsItsWork = async ({ gate, other, lease }: Awaited<ReturnType<typeof openTwo>>) => {
      await found(() => isLocked(lease));
      other.postgres.heal();
      await wait(LOOKS_MS);
      gate.open();
      expect(await other.ended("one")).toMatchObject({ state: "completed", attempt: 1 });
    };

    it("keeps its works if it is back before the second look of another process", async () => {
      const two = await openTwo();
      const { executing, other, lease } = two;
      await atNext(other.postgres, LOOK, "hold");
      executing.postgres.cut();
      await found(async () => !(await isLocked(lease)));
      const isSecond = atNext(other.postgres, LOOK, "hold");
      other.postgres.heal();
      await isSecond;
      executing.postgres.heal();
      await keepsItsWork(two);
    });

    it("keeps its works if it is back before another process takes its lease", async () => {
      const two = await openTwo();
      const { executing, other } = two;
      const isTaking = atNext(other.postgres, TAKE, "hold");
      executing.postgres.cut();
      await isTaking;
      executing.postgres.heal();
      await keepsItsWork(two);
    });

    it.each(["keeps its lease", "gets another lease if its own is gone"])(
      "%s although the server has not noticed that its last session ended",
      async (how) => {
        const { gate, executing, other, lease } = await openTwo(3000);
        const own = `WHERE process = '${executing.engine.process}'`;
        // The statements of the old session get no answer, until they time out.
        executing.postgres.forget();
        if (how.startsWith("keeps")) await query(`UPDATE ${table("processes")} SET until = 'infinity' ${own}`);
        else await query(`DELETE FROM ${table("processes")} ${own}`);
        const found = `SELECT lease FROM ${table("processes")} ${own} AND until < 'infinity'`;
        await expect.poll(async () => (await query(found)).length).toBe(1);
        expect((await leaseOf(executing)) === lease).toBe(how.startsWith("keeps"));
        // Statements on its other connections would wait for their timeout, too.
        executing.postgres.heal();
        gate.open();
        expect((await other.ended("one")).state).toBe(how.startsWith("keeps") ? "completed" : "interrupted");
      },
    );
  });

  describe.runIf(hasPostgresServer())("a server that ends all sessions", () => {
    let server: PostgresServer;
    beforeEach(async () => {
      server = await postgresServer();
      place = { ...place, postgresUrl: server.url };
    });
    afterEach(async () => {
      await opened?.close();
      opened = undefined;
      await server[Symbol.asyncDispose]();
    });

    it.each(["restarts, and the process counts as late", "restarts", "recovers from a crash of one of its processes"])(
      "%s: a process that is back first leaves its works to another one, which comes later",
      async (how) => {
        const { gate, work } = gated();
        const first = await open(work, { leaseMs: LONG_LEASE_MS });
        await first.engine.drain(0);
        const second = await open(work, { leaseMs: LONG_LEASE_MS });
        await first.engine.start("closed", "one", {});
        await found(() => told.length);
        const serverOf = `SELECT server FROM ${table("processes")} WHERE process = '${first.engine.process}'`;
        const [before] = await query(serverOf);
        second.postgres.cut();
        if (how.startsWith("restarts")) {
          await server.stop("fast");
          await server.start();
        } else {
          const [{ pid }] = await query("SELECT pid FROM pg_stat_activity WHERE application_name = 'portico engine lease'");
          process.kill(pid, "SIGKILL");
        }
        const isBack = async () => (await query(serverOf).catch(() => [before]))[0].server !== before.server;
        if (how.endsWith("late"))
          await query(`UPDATE ${table("processes")} SET until = '-infinity' WHERE process = '${second.engine.process}'`);
        await found(isBack);
        await wait(LOOKS_MS);
        second.postgres.heal();
        gate.open();
        await found(async () => (await first.engine.status("one").catch(() => undefined))?.endedAt);
        expect(await first.engine.status("one")).toMatchObject({ state: "completed", attempt: 1 });
        expect(told).toEqual(["1 one 1", "one done"]);
      },
    );
  });

  it("takes no job any more when it offers its works to others while it closes", async () => {
    const work: Work = async ({ signal }) => {
      told.push("began");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      signal.throwIfAborted();
    };
    const { engine, close } = await open(work, { leaseMs: LONG_LEASE_MS });
    await engine.start("resumed", "one", {});
    await found(() => told.length);
    await close();
    await using client = await redisClient(place.redisUrl);
    const queued = (list: string) => client.lrange(`${place.prefix}:engine:resumed:${list}`, 0, -1);
    expect([(await queued("wait")).length, await queued("active")]).toEqual([1, []]);
  });

  it("disturbs no other process while the commit of a frozen process keeps its lease", async () => {
    const { gate, work } = gated();
    const first = await open(work, { leaseMs: 1000 });
    await stopSweeps();
    const sessions = async () =>
      (
        await query(
          `SELECT pid FROM pg_stat_activity WHERE application_name = 'portico engine lease' AND datname = current_database() ORDER BY pid`,
        )
      ).map(({ pid }) => pid);
    const [own] = await sessions();
    const second = await open(work, { leaseMs: 1000 }, { begins: "here" });
    const isHeld = atNextCommit(second, "hold");
    void second.engine.start("resumed", "one", {}).catch(() => {});
    await isHeld;
    await wait(3000);
    expect(await sessions()).toContain(own);
    second.postgres.heal();
    gate.open();
    expect((await first.ended("one")).state).toBe("completed");
  });

  it("renews its lease before it looks at others for long, if the server was slow", async () => {
    const { work } = gated();
    const first = await open(work, { leaseMs: LONG_LEASE_MS });
    await atNext(first.postgres, LOOK, "hold");
    await wait(LOOKS_MS * 2);
    let looks = 0;
    first.postgres.fate = (sent) => {
      if (sent.includes(LOOK)) looks++;
      return "through";
    };
    const from = performance.now();
    first.postgres.heal();
    await wait(LOOKS_MS / 3);
    // One that waited, and those of the time since then.
    expect(looks).toBeLessThanOrEqual(2 + (performance.now() - from) / 300);
  });

  it("offers work again that the queue has lost, also from a process that executes nothing", async () => {
    const accepts = await open(async () => {}, { executes: false });
    await accepts.engine.start("resumed", "one", {});
    await using client = await redisClient(place.redisUrl);
    const jobs = async () => (await client.keys(`${place.prefix}:engine:*`)).filter((key) => /:[-+\d]+$/.test(key));
    await expect.poll(jobs).toHaveLength(1);
    await client.del(await client.keys(`${place.prefix}:engine:*`));
    await expect.poll(jobs).toHaveLength(1);
  });

  describe("an offer", () => {
    /** A process whose queue brings each offer `times` times, and has lost it then. Its kind adds the IDs of its works to `told`. */
    const openAlone = async (times: number) => {
      const records = postgresRecords({ url: place.postgresUrl, schema: place.schema });
      const adapters = [records, memoryBus({}), systemClock(undefined), memoryTelemetry({})];
      const app = await createApp({ name: "alone", adapters });
      const store = postgresStoreOf(app.port(ports.records))!;
      const engine = new ClusterEngine({
        ...{ store, journal: await openClusterJournal(store), dispatcher: createForgetfulDispatcher(times) },
        ...{ bus: app.port(ports.bus), clock: app.port(ports.clock), log: app.port(ports.telemetry).log },
        ...{ leaseMs: LONG_LEASE_MS, keepEndedMs: 60_000, parkAfterMs: 50, executes: true },
      });
      const options = { onInterrupted: "resume", begins: "anywhere", concurrency: 100_000 } as const;
      engine.define("kind", async ({ id }) => void told.push(id), options);
      await engine.ready();
      const ended = (id: string) => found(async () => (await engine.status(id))?.endedAt);
      return { engine, ended, [Symbol.asyncDispose]: () => engine.close().then(app.close) };
    };

    it("that comes several times executes its work once", async () => {
      await using alone = await openAlone(5);
      const ids = Array.from({ length: 300 }, (_, at) => `work-${at}`);
      await Promise.all(ids.map((id) => alone.engine.start("kind", id, {})));
      await Promise.all(ids.map(alone.ended));
      expect(told.toSorted()).toEqual(ids.toSorted());
    });

    it("is made again by a process that had lost its lease, and did not know yet", async () => {
      await using alone = await openAlone(1);
      await query(`DELETE FROM ${table("processes")}`);
      await alone.engine.start("kind", "one", {});
      await alone.ended("one");
    });
  });
});

/** Brings each offer several times, one turn of the event loop after another, as soon as its consumer has room. */
function createForgetfulDispatcher(times: number): Dispatcher {
  const consumers = new Map<string, OfferConsumer>();
  let isClosed = false;
  const bring = async (offer: Offer): Promise<void> => {
    for (let at = 0; at < times && !isClosed; at++) {
      while (!consumers.get(offer.kind)!.take(offer) && !isClosed) await wait(10);
      await nextTurn();
    }
  };
  return {
    async offer(offers) {
      for (const offer of offers) void bring(offer);
    },
    missing: async () => [],
    consume(kind, consumer) {
      consumers.set(kind, consumer);
      return () => {};
    },
    isIdle: () => false,
    async stop() {
      isClosed = true;
    },
    async close() {
      isClosed = true;
    },
  };
}

async function redisClient(url: string) {
  const client = new Redis(url);
  return Object.assign(client, { [Symbol.asyncDispose]: async () => client.disconnect() });
}
