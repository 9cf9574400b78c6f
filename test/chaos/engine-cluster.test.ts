import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { ports } from "@portico/core";
import fc from "fast-check";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { hasPostgresServer, postgresServer, type PostgresServer } from "../harness/postgres-server.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../harness/redis.ts";
import { type Fault, type FaultyCluster, openFaultyCluster, type Outcome } from "./cluster-faults.ts";
import { breaches, type EndedWork, type StartedWork } from "./cluster-model.ts";
import { type Deed, type Happening, type KindName, KINDS } from "./cluster-work.ts";

const PROCESSES = 3;
const LEASE_MS = 2000;
const RUNS = process.env.PORTICO_LONG ? 25 : 1;
const FAULTS = process.env.PORTICO_LONG ? 12 : 8;
/** Requests between two faults. */
const PACE = 30;

type Command =
  | { readonly is: "start"; readonly kind: KindName; readonly key: number; readonly deeds: readonly Deed[] }
  | { readonly is: "signal"; readonly work: number; readonly name: string }
  | { readonly is: "cancel"; readonly work: number };

const process_ = fc.nat({ max: PROCESSES - 1 });
const names = fc.constantFrom("a", "b");
/** Some durations are long, so that a fault meets executing works. */
const time = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 30 }) },
  { weight: 1, arbitrary: fc.constantFrom(400, 1200) },
);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ is: fc.constant("step" as const), repeatable: fc.boolean(), ms: time }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("sleep" as const), ms: time }) },
  {
    weight: 2,
    arbitrary: fc.record({ is: fc.constant("wait" as const), name: names, ms: fc.option(time, { nil: undefined }) }),
  },
);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      is: fc.constant("start" as const),
      kind: fc.constantFrom(...(Object.keys(KINDS) as KindName[])),
      key: fc.nat({ max: 5 }),
      deeds: fc.array(deed, { maxLength: 4 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ is: fc.constant("signal" as const), work: fc.nat({ max: 12 }), name: names }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("cancel" as const), work: fc.nat({ max: 12 }) }) },
);

const how = fc.constantFrom("cut" as const, "hold" as const, "reset" as const, "forget" as const);
/** Durations shorter and longer than a lease. */
const away = fc.constantFrom(LEASE_MS / 4, LEASE_MS * 1.5);
const anyFault: readonly fc.Arbitrary<Fault>[] = [
  fc.record({ is: fc.constant("kill" as const), process: process_ }),
  fc.record({ is: fc.constant("kill" as const), process: process_ }),
  fc.record({ is: fc.constant("freeze" as const), process: process_, ms: away }),
  fc.record({
    ...{ is: fc.constant("line" as const), process: process_, to: fc.constant("postgres" as const) },
    ...{ how, ms: away },
  }),
  fc.record({
    ...{ is: fc.constant("line" as const), process: process_, to: fc.constant("redis" as const) },
    ...{ how, ms: away },
  }),
  fc.record({ is: fc.constant("redis wiped" as const) }),
  fc.record({ is: fc.constantFrom("redis emptied" as const, "redis frozen" as const), ms: away }),
  fc.record({
    ...{ is: fc.constant("postgres restarted" as const), mode: fc.constantFrom("fast" as const, "immediate" as const) },
    ms: fc.constantFrom(0, LEASE_MS * 1.5),
  }),
];
/** Every kind of fault once, in random order, and then random faults. */
const faults = fc
  .tuple(
    fc.tuple(...anyFault).chain((all) => fc.shuffledSubarray(all, { minLength: all.length })),
    fc.array(fc.oneof(...anyFault), { minLength: FAULTS, maxLength: FAULTS }),
  )
  .map((both) => both.flat().slice(0, FAULTS));

/** Requests, each with its process and the pause after it. */
const requests = fc.array(fc.record({ command, to: process_, pause: fc.nat({ max: 60 }) }), {
  minLength: FAULTS * PACE,
  maxLength: FAULTS * PACE,
});

describe.runIf(hasPostgresServer() && hasRedisServer())("engine/bullmq in several processes", () => {
  let postgres: PostgresServer;
  let redis: OwnRedis;
  const folder = temporaryFolder();
  /** Counts on when the test is repeated, so that a run never sees what another one stored. */
  let runs = 0;
  beforeAll(async () => {
    [postgres, redis] = await Promise.all([postgresServer(), ownRedis()]);
  });
  afterAll(async () => {
    await Promise.all([postgres?.[Symbol.asyncDispose](), redis?.[Symbol.asyncDispose]()]);
    folder.remove();
  });

  const query = async <Row extends object>(sql: string): Promise<readonly Row[]> => {
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    try {
      return (await client.query<Row>(sql)).rows;
    } finally {
      await client.end();
    }
  };

  it(
    "keeps the engine's law whatever fails: processes, connections, Redis or PostgreSQL, for less or for longer than a lease",
    async () => {
      const property = fc.asyncProperty(faults, requests, async (befalling, asked) => {
        const at = ++runs;
        const place = { postgres, redis, schema: `run${at}`, prefix: `run${at}`, leaseMs: LEASE_MS };
        await tryFaults({ ...place, happened: join(folder.path, `run${at}`) }, befalling, asked);
      });
      // A sample takes too long to be made smaller, and its races do not repeat.
      const { failed, seed, counterexample, errorInstance } = await fc.check(property, { numRuns: RUNS, endOnFailure: true });
      if (failed) throw new Error(`Seed ${seed}: ${JSON.stringify(counterexample?.[0])}`, { cause: errorInstance });
    },
    60_000 + RUNS * 120_000,
  );

  async function tryFaults(
    place: Parameters<typeof openFaultyCluster>[1],
    befalling: readonly Fault[],
    asked: readonly { readonly command: Command; readonly to: number; readonly pause: number }[],
  ): Promise<void> {
    await using cluster = await openFaultyCluster(PROCESSES, place);
    await cluster.calm();
    const client = createClient(cluster);
    for (const [at, { command, to, pause }] of asked.entries()) {
      if (at % PACE === PACE / 2) cluster.begin(befalling[(at - PACE / 2) / PACE]!);
      client.send(to, command);
      await wait(pause);
    }
    await cluster.calm();
    const works = await client.settle();

    const table = (name: string) => `"${place.schema}"."_engine_${name}"`;
    const openWorks = () =>
      query<{ id: string; awaited: string | null }>(`SELECT id, state, awaited FROM ${table("work")} WHERE ended IS NULL`);
    for (let open = await openWorks(); open.length > 0; open = await openWorks()) {
      await client.signalAll(new Set(open.map(({ id }) => id)));
      await wait(200);
    }
    const rows = await query<{ id: string; work: string }>(`SELECT id, work FROM ${table("work")}`);
    const numbers = new Map(rows.map(({ id, work }) => [id, Number(work)]));
    const ended = await Promise.all(works.map((work) => client.read(work, numbers.get(work.id)!)));
    expect([...numbers.keys()].toSorted()).toEqual(works.map(({ id }) => id).toSorted());

    // Jobs of a process that died are taken by other processes, and end there.
    const keys = async () => (await redis.ask("KEYS", `${place.prefix}:engine:*`)) as readonly string[];
    await expect
      .poll(async () => (await keys()).filter((key) => /:(?:[-+\d]+|wait|active|delayed|failed|completed)$/.test(key)))
      .toEqual([]);
    expect(await query(`SELECT * FROM ${table("notes")}`)).toEqual([]);
    expect(await query(`SELECT * FROM ${table("work")} WHERE owner IS NOT NULL OR due IS NOT NULL`)).toEqual([]);
    expect(await cluster.close()).toEqual(Array.from({ length: PROCESSES }, () => 0));
    expect(await query(`SELECT * FROM ${table("processes")}`)).toEqual([]);
    expect(cluster.deaths).toEqual([]);

    const happenings = readFileSync(place.happened, "utf8")
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Happening]));
    expect(breaches({ works: ended, happenings, disturbed: cluster.disturbed })).toEqual([]);
  }
});

/** A client that records its requests and their answers. */
function createClient(cluster: FaultyCluster) {
  const works: StartedWork[] = [];
  const asking: Promise<void>[] = [];
  let time = 0;
  let payloads = 0;

  const answerOf = (outcome: Outcome): unknown => (outcome && "answer" in outcome ? outcome.answer : undefined);
  const start = async (to: number, work: StartedWork): Promise<void> => {
    const { kind, id, key, script } = work;
    const outcome = await cluster.ask(to, { is: "start", kind, id, key, script });
    if (answerOf(outcome) !== undefined) Object.assign(work, { answered: ++time });
  };
  const signal = async (to: number, work: StartedWork, name: string): Promise<void> => {
    const sent = { name, payload: ++payloads, sent: ++time, answered: undefined };
    work.signals.push(sent);
    const outcome = await cluster.ask(to, { is: "signal", id: work.id, name, payload: sent.payload });
    if (answerOf(outcome) === true) Object.assign(sent, { answered: ++time });
  };
  const cancel = async (to: number, work: StartedWork): Promise<void> => {
    const at = work.cancels.push(undefined) - 1;
    work.cancels[at] = answerOf(await cluster.ask(to, { is: "cancel", id: work.id })) as boolean | undefined;
  };
  const ask = async (request: Parameters<FaultyCluster["ask"]>[1]): Promise<unknown> => {
    for (let to = 0; ; to++) {
      const outcome = await cluster.ask(to % PROCESSES, request);
      if (outcome && "answer" in outcome) return outcome.answer;
      await wait(50);
    }
  };

  return {
    /** Does not wait for the answer. */
    send(to: number, command: Command): void {
      if (command.is === "start") {
        const id = `work-${works.length}`;
        const { kind, deeds } = command;
        const unknown = { sent: ++time, answered: undefined, signals: [], cancels: [] };
        const work: StartedWork = { ...unknown, kind, id, key: `key-${command.key}`, script: { deeds } };
        works.push(work);
        return void asking.push(start(to, work));
      }
      const work = works.at(-1 - command.work);
      if (!work) return;
      asking.push(command.is === "signal" ? signal(to, work, command.name) : cancel(to, work));
    },
    /** Waits for all answers, and starts again everything that may not have been accepted. */
    async settle(): Promise<readonly StartedWork[]> {
      await Promise.all(asking);
      for (const work of works.filter(({ answered }) => answered === undefined)) {
        const { kind, id, key, script } = work;
        await ask({ is: "start", kind, id, key, script });
      }
      return works;
    },
    /** Let open works continue that wait for a signal. */
    async signalAll(ids: ReadonlySet<string>): Promise<void> {
      const open = works.filter(({ id }) => ids.has(id));
      const waited = (work: StartedWork) => new Set(work.script.deeds.flatMap((each) => (each.is === "wait" ? [each.name] : [])));
      await Promise.all(open.flatMap((work) => Array.from(waited(work), (name) => signal(works.indexOf(work), work, name))));
    },
    async read(work: StartedWork, number: number): Promise<EndedWork> {
      const { id } = work;
      const status = (await ask({ is: "status", id })) as ports.WorkStatus;
      const heldBy = ((await ask({ is: "record", collection: "held", id })) ?? undefined) as string | undefined;
      expect(await ask({ is: "record", collection: "accepted", id }), `the record of ${id}`).toEqual(expect.any(String));
      return { ...work, number, status, heldBy };
    },
  };
}
