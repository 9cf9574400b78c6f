import { hmacSigning } from "@portico/adapters/signing/hmac";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { DatabaseSync } from "node:sqlite";
import { redisBus } from "@portico/cluster/bus/redis";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { recordDocuments } from "@portico/adapters/documents/records";
import { postgresLog } from "@portico/cluster/log/postgres";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { moveStore, type MoveStoreOptions } from "@portico/cluster/stores/move-store";
import { migratePostgresStore } from "@portico/cluster/stores/postgres";
import { sqliteStore, sqliteStorePaths } from "@portico/adapters/stores/sqlite";
import { type App, createApp, ports, Secret } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { DATA_FOLDER } from "../fixtures/platform-folder.ts";
import type { StoredThings } from "../fixtures/read-stores.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { redisPlace } from "../harness/redis.ts";

const database = await postgresDatabase();
afterAll(() => database?.drop());
const redis = await redisPlace();
const KEY = new Secret(Buffer.alloc(32, 1).toString("base64url"));
const FIXTURES = join(import.meta.dirname, "../fixtures/stores");
const KEPT = [ports.records, ports.log, ports.blobs, ports.secrets];

describe.skipIf(!database)("moveStore", () => {
  const { url, query } = database ?? { url: "", query: async () => [] };
  const folder = temporaryFolder();
  afterAll(() => folder.remove());
  let moves = 0;
  let dir: string;
  let schema: string;
  let target: App;
  const openTarget = () =>
    createApp({
      name: "target",
      adapters: [
        ...[postgresRecords({ url, schema, poolSize: 4 }), postgresLog({}), recordSecrets({ key: KEY })],
        ...[fileBlobs({ dir: join(dir, "moved") }), recordDocuments({ id: "agents" })],
      ],
    });
  beforeEach(async () => {
    dir = join(folder.path, `${++moves}`);
    schema = `moved_${moves}`;
    await fill(dir);
    target = await openTarget();
  });
  afterEach(() => target.close());

  const portsOf = (app: App) => ({
    records: app.port(ports.records),
    log: app.port(ports.log),
    blobs: app.port(ports.blobs),
    secrets: app.port(ports.secrets),
  });
  const move = (options: Partial<MoveStoreOptions> = {}) => moveStore({ from: dir, to: portsOf(target), ...options });
  const source = <T>(work: (app: App) => Promise<T>) => withSource(dir, work);
  const inSqlite = (sql: string): void => {
    const opened = new DatabaseSync(sqliteStorePaths(dir).records);
    opened.exec(sql);
    opened.close();
  };

  it("moves every record, entry, blob, secret and document, and leaves the data directory as it is", async () => {
    const agents = await createApp({
      name: "agents",
      adapters: [memoryDocuments({ id: "agents", texts: { "a/agent.json": "{}", "a/notes.md": "not this one" } })],
    });
    const documents = [
      {
        from: agents.port(ports.documents)[0]!,
        to: target.port(ports.documents)[0]!,
        accepts: (name: string) => name.endsWith(".json"),
      },
    ];
    const parts: string[] = [];
    expect(await move({ documents, onPart: (part) => parts.push(part) })).toEqual({
      ...{ records: 252, log: 303, works: 6, blobs: 2, secrets: 2, documents: 1 },
    });
    expect(parts).toEqual(["records", "log", "works", "blobs", "secrets", "documents", "comparison"]);
    await target.close();
    target = await openTarget();
    const { records, log, blobs, secrets } = portsOf(target);
    const notes = records.collection<{ rank: number }>({ name: "notes", indexes: { rank: ["rank"] } });
    expect((await notes.query({ where: { rank: 249 } })).items.map(({ id }) => id)).toEqual(["n249"]);
    expect((await records.collection({ name: "odd" }).get("\u{1F600}/'\""))?.value).toEqual({ text: "\0\ud800", deep: { a: 1 } });
    expect(
      (await Array.fromAsync(log.read("talks/1"))).map(({ sequence, ...rest }) => [sequence, "entry" in rest && rest.entry]),
    ).toEqual([
      [1, { text: "\u0000" }],
      [2, { text: "second" }],
    ]);
    expect(await log.count("many")).toBe(300);
    expect(await log.append("many", {})).toBe(301);
    expect(await textOf((await blobs.open("a/b"))!.stream)).toBe("bytes");
    expect((await secrets.find("agent"))?.reveal()).toBe("kept");
    expect(await target.port(ports.documents)[0]!.list()).toEqual(["a/agent.json"]);
    // What it moved is still there.
    await source(async (app) => expect(await app.port(ports.log).count("talks/1")).toBe(2));
  });

  it("gives records versions above those that they had", async () => {
    const version = await source(
      async (app) => (await app.port(ports.records).collection({ name: "notes" }).get("n249"))!.version,
    );
    await move();
    const moved = await target.port(ports.records).collection({ name: "notes" }).get("n0");
    expect(moved!.version).toBeGreaterThan(version);
  });

  it("keeps the places of damaged and of missing entries", async () => {
    inSqlite(`UPDATE "_log_entries" SET entry = '{' WHERE place & 0xffffffff = 2`);
    inSqlite(`DELETE FROM "_log_entries" WHERE place & 0xffffffff = 7`);
    expect(await move()).toMatchObject({ log: 303 });
    const found = await Array.fromAsync(target.port(ports.log).read("talks/1"));
    expect(found.map(({ damaged }) => damaged)).toEqual([false, true]);
    const many = await Array.fromAsync(target.port(ports.log).read("many"));
    expect(many).toHaveLength(300);
    expect(many.flatMap(({ sequence, damaged }) => (damaged ? sequence : []))).toEqual([2, 7]);
  });

  it("tells what differs, and can be repeated until nothing does", async () => {
    const { blobs } = portsOf(target);
    const lossy: ports.Blobs = {
      ...blobs,
      put: (key, _bytes, options) => blobs.put(key, Readable.from([Buffer.from("other")]), options),
    };
    const failed = move({ to: { ...portsOf(target), blobs: lossy } });
    await expect(failed).rejects.toMatchObject({
      name: "MoveFailed",
      message: "These differ after the move: blob a/b, blob c. Repeat the move",
    });
    await source((app) => app.port(ports.records).collection({ name: "notes" }).remove("n0"));
    expect(await move()).toMatchObject({ records: 251, log: 303 });
    expect(await target.port(ports.records).collection({ name: "notes" }).get("n0")).toBeUndefined();
    await expect(move()).rejects.toThrow("was moved into this store before");
  });

  it.skipIf(!redis)("lets the cluster end work that had not ended, with what it had done", async () => {
    await move();
    const app = await createApp({
      name: "cluster",
      adapters: [
        ...[postgresRecords({ url, schema, poolSize: 4 }), ioredisServer({ ...redis!() }), redisBus(), hmacSigning({ key: KEY })],
        ...[memoryTelemetry({}), bullmqEngine({})],
      ],
    });
    const engine = app.port(ports.engine);
    const heard = defineKinds(engine, Promise.resolve());
    expect(await engine.status("ended")).toMatchObject({ state: "completed", output: { step: 1 } });
    expect(await engine.status("waits")).toMatchObject({ state: "waiting", attempt: 1 });
    await engine.ready();
    expect(await engine.start("resumed", "ended", {})).toEqual({ duplicate: true });
    await engine.signal("waits", "go", "second");
    const state = async (id: string) => (await engine.status(id))?.state;
    for (const [id, end] of [
      ["waits", "completed"],
      ["hangs", "completed"],
      ["closes", "interrupted"],
      ["sleeps", "completed"],
      ["behind", "completed"],
    ] as const) {
      await expect.poll(async () => [id, await state(id)]).toEqual([id, end]);
    }
    // It was kept before the move, and the step of the first execution was not run again.
    expect((await engine.status("waits"))?.output).toEqual({ step: 1, first: "first", second: "second" });
    expect(heard).toEqual({ steps: ["hangs", "behind"], closed: ["closes"] });
    await app.close();
  });

  it("refuses a store that processes use", async () => {
    await migratePostgresStore({ url, schema });
    await query(`INSERT INTO ${schema}._engine_processes VALUES (1, 'p', 's', now() + interval '1 minute')`);
    await expect(move()).rejects.toThrow("A process uses this store: stop them first");
    await query(`UPDATE ${schema}._engine_processes SET until = now()`);
    expect(await move()).toMatchObject({ works: 6 });
  });

  it("refuses a store with data, and changes nothing in it", async () => {
    await target.port(ports.records).collection({ name: "theirs" }).put("one", {});
    await expect(move()).rejects.toThrow(`The schema "${schema}" contains data (theirs)`);
    await target.port(ports.records).collection({ name: "theirs" }).remove("one");
    await target.port(ports.log).append("theirs", {});
    await expect(move()).rejects.toThrow("contains data (_log_entries, _log_streams)");
    expect(await query(`SELECT count(*)::int AS count FROM ${schema}._log_entries`)).toEqual([{ count: 1 }]);
  });

  it("refuses a bucket with blobs, a folder without an instance, and records that are not in PostgreSQL", async () => {
    await portsOf(target).blobs.put("theirs", Readable.from([Buffer.from("x")]), { maxBytes: 1 });
    await expect(move()).rejects.toThrow("contains blobs");
    await expect(move({ from: join(dir, "none") })).rejects.toMatchObject({ name: "MoveFailed" });
    await using other = await createApp({ name: "other", adapters: [memoryRecords()] });
    const to = { ...portsOf(target), records: other.port(ports.records) };
    await expect(move({ to })).rejects.toThrow(TypeError);
  });

  it.each(readdirSync(FIXTURES))("moves the data directory that version %s wrote", async (name) => {
    const from = join(dir, "earlier");
    cpSync(join(FIXTURES, name, DATA_FOLDER), from, { recursive: true });
    const { stored } = JSON.parse(readFileSync(join(FIXTURES, name, "expected.json"), "utf8")) as { stored: StoredThings };
    const count = (all: Readonly<Record<string, object>>) =>
      Object.values(all).reduce((sum, each) => sum + Object.keys(each).length, 0);
    expect(await move({ from })).toEqual({
      records: count(stored.records),
      log: count(stored.log),
      works: Object.keys(stored.works).length,
      blobs: Object.keys(stored.blobs).length,
      secrets: Object.keys(stored.secrets).length,
      documents: 0,
    });
  });

  it("stops when its signal aborts", async () => {
    const reason = new Error("stop");
    await expect(move({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(await move()).toMatchObject({ records: 252 });
  });
});

/** Kinds of work, as the source and the target have them. `hang` holds executions that hang, until it resolves. */
function defineKinds(engine: ports.Engine, hang: Promise<void>) {
  const heard = { steps: [] as string[], closed: [] as string[] };
  const step = (context: ports.WorkContext) =>
    context.step("one", async () => {
      heard.steps.push(context.id);
      return 1;
    });
  engine.define(
    "resumed",
    async (context, { waits = 0, sleeps = 0, hangs = false }: { waits?: number; sleeps?: number; hangs?: boolean }) => {
      const found = { step: hangs ? 1 : await step(context) };
      if (hangs) await hang;
      if (hangs) await step(context);
      if (sleeps > 0) await context.sleep("nap", sleeps);
      if (waits === 0) return found;
      return { ...found, first: await context.waitFor("go"), second: await context.waitFor("go") };
    },
    { onInterrupted: "resume" },
  );
  engine.define("closed", () => hang.then(() => new Promise(() => {})), {
    onInterrupted: "close",
    closed: async (id) => void heard.closed.push(id),
  });
  return heard;
}

/** Work in each state in which a process can leave it. */
async function leaveWork(engine: ports.Engine): Promise<void> {
  defineKinds(engine, new Promise(() => {}));
  await engine.ready();
  const until = async (id: string, state: string) => {
    while ((await engine.status(id))?.state !== state) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await engine.start("resumed", "ended", {});
  await engine.start("resumed", "waits", { waits: 2 });
  await engine.signal("waits", "go", "first");
  await engine.start("resumed", "sleeps", { sleeps: 1500 });
  await engine.start("resumed", "hangs", { hangs: true }, { key: "one" });
  await engine.start("resumed", "behind", {}, { key: "one" });
  await engine.start("closed", "closes", {});
  for (const [id, state] of [
    ["ended", "completed"],
    ["waits", "waiting"],
    ["sleeps", "waiting"],
    ["hangs", "executing"],
    ["closes", "executing"],
  ] as const) {
    await until(id, state);
  }
}

async function withSource<T>(dir: string, work: (app: App) => Promise<T>): Promise<T> {
  const adapters = [...sqliteStore({ dir, ports: KEPT }), embeddedEngine({ parkAfterMs: 10 }), memoryTelemetry({})];
  const app = await createApp({ name: "source", adapters });
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}

function fill(dir: string): Promise<void> {
  return withSource(dir, async (app) => {
    const records = app.port(ports.records);
    const notes = records.collection<{ rank: number }>({ name: "notes", indexes: { rank: ["rank"] } });
    await records.batch(Array.from({ length: 250 }, (_, rank) => notes.write.put(`n${rank}`, { rank })));
    const odd = records.collection<object>({ name: "odd" });
    await odd.put("\u{1F600}/'\"", { text: "\0\ud800", deep: { a: 1 } });
    await odd.put("gone", {});
    await odd.remove("gone");
    await odd.put("last", { list: [1, [2]], number: 2 ** 70 });
    const log = app.port(ports.log);
    await log.appendAll([
      ...[
        { stream: "talks/1", entry: { text: "\u0000" } },
        { stream: "talks/1", entry: { text: "second" } },
      ],
      ...Array.from({ length: 300 }, (_, at) => ({ stream: "many", entry: { at } })),
    ]);
    await log.append("removed", {});
    await log.remove("removed");
    await log.append("talks/\u{1F600}", {});
    const blobs = app.port(ports.blobs);
    await blobs.put("a/b", Readable.from([Buffer.from("bytes")]), { maxBytes: 5 });
    await blobs.put("c", Readable.from([Buffer.alloc(100_000, 1)]), { maxBytes: 100_000 });
    const secrets = app.port(ports.secrets);
    await secrets.replace("agent", new Secret("kept"));
    await secrets.replace("workflow", new Secret("another"));
    await leaveWork(app.port(ports.engine));
  });
}
