import { join } from "node:path";
import { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { DatabaseSync } from "node:sqlite";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { recordDocuments } from "@portico/adapters/documents/records";
import { postgresLog } from "@portico/adapters/log/postgres";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/adapters/records/postgres";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { moveStore, type MoveStoreOptions } from "@portico/adapters/stores/move-store";
import { sqliteStore, sqliteStorePaths } from "@portico/adapters/stores/sqlite";
import { type App, createApp, ports, Secret } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";

const database = await postgresDatabase();
afterAll(() => database?.drop());
const KEY = new Secret(Buffer.alloc(32, 1).toString("base64url"));
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
      ...{ records: 252, log: 303, blobs: 2, secrets: 2, documents: 1 },
    });
    expect(parts).toEqual(["records", "log", "blobs", "secrets", "documents", "comparison"]);
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

  it("stops when its signal aborts", async () => {
    const reason = new Error("stop");
    await expect(move({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(await move()).toMatchObject({ records: 252 });
  });
});

async function withSource<T>(dir: string, work: (app: App) => Promise<T>): Promise<T> {
  const app = await createApp({ name: "source", adapters: sqliteStore({ dir, ports: KEPT }) });
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
  });
}
