import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import fs, {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { ports } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkCollection } from "../../adapters/src/records/collection-shape.ts";
import { createRecords } from "../../adapters/src/records/create-records.ts";
import { planQuery } from "../../adapters/src/records/query-plan.ts";
import { openDatabase } from "../../adapters/src/records/sqlite/database.ts";
import { takeOverSync } from "../../adapters/src/records/sqlite/disk-sync.ts";
import { pageSql } from "../../adapters/src/records/sqlite/page-sql.ts";
import { createSqliteBackend } from "../../adapters/src/records/sqlite.ts";
import { openAdapter } from "./open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-sqlite-"));
afterAll(() => rmSync(folder, { recursive: true }));

let stores = 0;
const newPath = (): string => join(folder, `data-${++stores}`, "records.db");

interface Note {
  text: string;
}

describe("records/sqlite: the file", () => {
  const modes = (path: string): Record<string, number> =>
    Object.fromEntries(readdirSync(dirname(path)).map((file) => [file, statSync(join(dirname(path), file)).mode & 0o777]));

  it("can be read by its owner alone, and so can the files beside it", async () => {
    const path = newPath();
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    await port.collection<Note>({ name: "notes" }).put("one", { text: "t" });
    const files = ["records.db", "records.db-mark", "records.db-shm", "records.db-wal"];
    expect(modes(path)).toEqual(Object.fromEntries(files.map((file) => [file, 0o600])));
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    await close();
  });

  it("gets its mode set right when others could read it", async () => {
    const path = newPath();
    await (await openAdapter(sqliteRecords({ path }))).close();
    chmodSync(path, 0o644);
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    await port.collection<Note>({ name: "notes" }).put("one", { text: "t" });
    expect(new Set(Object.values(modes(path)))).toEqual(new Set([0o600]));
    await close();
  });

  it("is alone and whole after closing", async () => {
    const path = newPath();
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    await port.collection<Note>({ name: "notes" }).put("one", { text: "t" });
    await close();
    expect(Object.keys(modes(path))).toEqual(["records.db", "records.db-mark"]);
    const database = new DatabaseSync(path, { readOnly: true });
    expect(database.prepare("SELECT id, value FROM notes").all()).toEqual([{ id: "one", value: '{"text":"t"}' }]);
    database.close();
  });

  it("is in WAL mode, and syncs every commit before it is told, itself or by the writer", async () => {
    const path = newPath();
    const database = openDatabase(path);
    expect(database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    expect(database.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
    expect(database.prepare("PRAGMA busy_timeout").get()).toEqual({ timeout: 100 });
    const disk = takeOverSync(database)!;
    expect(database.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 1 });
    await new Promise<void>((resolve, reject) => disk.start(1, (error) => (error ? reject(error) : resolve())));
    disk.wait(1);
    disk.close();
    database.close();
  });

  it("announces no commit that the disk refused, and continues when the disk accepts writes", async () => {
    const { fdatasync } = fs;
    const { port, close } = await openAdapter(sqliteRecords({ path: newPath() }));
    const notes = port.collection<Note>({ name: "notes" });
    await notes.put("one", { text: "t" });
    const broken = (_file: number, told: (error: Error) => void) => void setImmediate(() => told(new Error("EIO: secret path")));
    Object.assign(fs, { fdatasync: broken });
    syncBuiltinESMExports();
    const refused = await notes.put("two", { text: "t" }).catch((error: unknown) => error);
    Object.assign(fs, { fdatasync });
    syncBuiltinESMExports();
    expect(refused).toBeInstanceOf(ports.RecordsUnavailable);
    expect((refused as Error).message).not.toContain("secret");
    await notes.put("three", { text: "t" });
    await close();
  });

  it("writes that are still on their way to the disk are told when it closes", async () => {
    const { port, close } = await openAdapter(sqliteRecords({ path: newPath() }));
    const notes = port.collection<Note>({ name: "notes" });
    const writes = Array.from({ length: 20 }, (_, at) => notes.put(`note-${at}`, { text: "t" }));
    await new Promise(setImmediate);
    const more = notes.put("last", { text: "t" });
    await close();
    expect((await Promise.all([...writes, more])).every(({ version }) => version > 0)).toBe(true);
  });
});

describe("records/sqlite: what is missing", () => {
  const copyStore = (from: string, to: string): void => {
    mkdirSync(dirname(to));
    for (const end of ["", "-wal", "-mark"]) copyFileSync(from + end, to + end);
  };
  const opened = async (path: string): Promise<{ readonly losses: readonly ports.StoreLoss[]; readonly version: number }> => {
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    const { items } = await port.collection<ports.StoreLoss>({ name: ports.STORE_LOSSES }).query();
    const { version } = await port.collection<Note>({ name: "notes" }).put("next", { text: "t" });
    await close();
    return { losses: items.map(({ value }) => value), version };
  };

  it.each<[string, (path: string) => void]>([
    ["the log beside it is deleted", (path) => rmSync(`${path}-wal`)],
    ["the log beside it is cut", (path) => truncateSync(`${path}-wal`, Math.floor(statSync(`${path}-wal`).size / 2))],
    [
      "the log beside it is garbled",
      (path) =>
        writeFileSync(
          `${path}-wal`,
          readFileSync(`${path}-wal`).map((byte, at) => (at < 60 || at > 4000 ? byte : ~byte)),
        ),
    ],
    ["an earlier copy takes its place", (path) => [`${path}-wal`, path].forEach((file) => rmSync(file))],
  ])("is noticed once when %s, and versions go on", async (_how, harm) => {
    const [path, copy] = [newPath(), newPath()];
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    const notes = port.collection<Note>({ name: "notes" });
    for (let at = 0; at < 20; at++) await notes.put(`note-${at}`, { text: "t" });
    const last = await notes.put("last", { text: "t" });
    // As a kill leaves it.
    copyStore(path, copy);
    await close();
    harm(copy);
    const { losses, version } = await opened(copy);
    expect(losses).toEqual([{ from: expect.any(Number), to: last.version }]);
    expect(version).toBeGreaterThan(last.version);
    expect((await opened(copy)).losses).toEqual(losses);
  });

  it("is nothing after a kill that left all files, nor without the mark, nor with one that cannot be read", async () => {
    const [path, copy] = [newPath(), newPath()];
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    await port.collection<Note>({ name: "notes" }).put("last", { text: "t" });
    copyStore(path, copy);
    await close();
    expect((await opened(copy)).losses).toEqual([]);
    for (const mark of [undefined, "", "many"]) {
      rmSync(`${copy}-mark`);
      if (mark !== undefined) writeFileSync(`${copy}-mark`, mark);
      expect((await opened(copy)).losses).toEqual([]);
    }
  });
});

describe("records/sqlite: what it refuses", () => {
  const refusal = async (path: string): Promise<unknown> => openAdapter(sqliteRecords({ path })).catch((error: unknown) => error);
  const made = (name: string, make: (path: string) => void): string => {
    const path = join(folder, name);
    make(path);
    return path;
  };
  const sql = (text: string) => (path: string) => {
    const database = new DatabaseSync(path);
    database.exec(text);
    database.close();
  };

  it.each<[string, (path: string) => void, string]>([
    [
      "garbage",
      (path) => writeFileSync(path, "no database at all, but long enough to be read as one ".repeat(20)),
      "not a database",
    ],
    ["a foreign database", sql("CREATE TABLE theirs (x)"), "not a records store"],
    ["a store that lost its counter", sql("PRAGMA user_version = 1"), "cannot be opened"],
    ["a newer version's store", sql("PRAGMA user_version = 2"), "newer version"],
  ])("opens no %s, and leaves it alone", async (name, make, sentence) => {
    const path = made(name, make);
    const size = statSync(path).size;
    const refused = await refusal(path);
    expect(refused).toBeInstanceOf(ports.RecordsUnavailable);
    expect(String(refused)).toContain(sentence);
    expect(statSync(path).size).toBe(size);
  });

  it("opens nothing below a file, and says why in the cause", async () => {
    const file = made("a-file", (path) => writeFileSync(path, ""));
    expect(await refusal(join(file, "records.db"))).toMatchObject({ name: "RecordsUnavailable", cause: { code: "EEXIST" } });
    expect(existsSync(file)).toBe(true);
  });

  it("refuses a damaged record, without its content in the error", async () => {
    const path = newPath();
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    const notes = port.collection<Note>({ name: "notes" });
    await notes.put("one", { text: "t" });
    sql(`UPDATE notes SET value = '{"text": hidden'`)(path);
    const refused: unknown = await notes.get("one").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ports.RecordsUnavailable);
    expect(`${refused}${String((refused as Error).cause)}`).not.toContain("hidden");
    await close();
  });
});

describe("records/sqlite: when writing fails", () => {
  let path: string;
  let database: DatabaseSync;
  let backend: ReturnType<typeof createSqliteBackend>;
  let notes: ports.Collection<Note>;
  beforeEach(() => {
    path = newPath();
    database = openDatabase(path);
    // Two attempts of 100 ms: long enough to be told from none.
    backend = createSqliteBackend(database, 2);
    notes = createRecords(backend).collection<Note>({ name: "notes" });
  });
  afterEach(() => backend.close());

  it("says that it is unavailable while another process holds the lock for too long, and works on afterwards", async () => {
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const refused = await Promise.allSettled([notes.put("one", { text: "t" }), notes.put("two", { text: "t" })]);
    for (const outcome of refused) {
      expect(outcome).toMatchObject({ reason: { name: "RecordsUnavailable", cause: { errstr: "database is locked" } } });
    }
    expect(await notes.get("one")).toBeUndefined();
    other.close();
    await notes.put("one", { text: "t" });
    expect((await notes.query()).items).toHaveLength(1);
  });

  it("waits for a lock that another process lets go, while the event loop goes on", async () => {
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const written = notes.put("one", { text: "t" });
    // Runs between the two attempts.
    setImmediate(() => other.close());
    await expect(written).resolves.toMatchObject({ id: "one" });
  });

  it("says that it is unavailable when the disk is full, keeps what was there, and works on when there is room", async () => {
    await notes.put("one", { text: "t" });
    const pages = Number(database.prepare("PRAGMA page_count").get()?.page_count);
    database.exec(`PRAGMA max_page_count = ${pages + 2}`);
    const large = { text: "x".repeat(100_000) };
    await expect(notes.put("two", large)).rejects.toMatchObject({
      name: "RecordsUnavailable",
      cause: { errstr: "database or disk is full" },
    });
    expect((await notes.query()).items.map((item) => item.id)).toEqual(["one"]);
    database.exec("PRAGMA max_page_count = 100000");
    await notes.put("two", large);
    expect((await notes.get("two"))?.value).toEqual(large);
  });

  it("commits the writes of one turn of the event loop together, and makes no commit without a change", async () => {
    const ends: string[] = [];
    const counted = countEnds(openDatabase(path), ends);
    const own = createSqliteBackend(counted);
    const same = createRecords(own).collection<Note>({ name: "notes" });
    await Promise.all(Array.from({ length: 50 }, (_, at) => same.put(`note-${at}`, { text: "t" })));
    expect(ends).toEqual(["COMMIT"]);
    await Promise.allSettled([same.put("note-1", { text: "u" }, "absent"), same.remove("none"), same.remove("note-2", -1)]);
    expect(ends).toEqual(["COMMIT", "ROLLBACK"]);
    own.close();
  });
});

/** Notes each run of a prepared statement that ends a transaction. */
function countEnds(counted: DatabaseSync, ends: string[]): DatabaseSync {
  const prepare = counted.prepare.bind(counted);
  counted.prepare = (sql) => {
    const statement = prepare(sql);
    if (sql !== "COMMIT" && sql !== "ROLLBACK") return statement;
    const run = statement.run.bind(statement);
    statement.run = () => {
      ends.push(sql);
      return run();
    };
    return statement;
  };
  return counted;
}

describe("records/sqlite: every query that an index covers", () => {
  const shape = checkCollection({
    name: "things",
    indexes: { group: ["group"], rank: ["rank"], both: ["group", "rank"], three: ["nested.at", "group", "rank"], id: ["id"] },
  });
  const database = openDatabase(newPath());
  const backend = createSqliteBackend(database);
  backend.open(shape);
  afterAll(() => backend.close());

  const wheres: ports.Query["where"][] = [
    {},
    { group: "g" },
    { group: true },
    { group: 1 },
    { rank: 5, group: "g" },
    { group: "g", "nested.at": 2 ** 60 },
  ];
  const orders: ports.Query["order"][] = [
    undefined,
    ...(["rank", "id", "group"] as const).flatMap((by) =>
      (["ascending", "descending"] as const).map((direction) => ({ by, direction })),
    ),
  ];
  const covered = wheres
    .flatMap((where) => orders.map((order) => ({ where, order })))
    .filter((query) => {
      try {
        return planQuery(shape, query);
      } catch {
        return false;
      }
    });

  it.each(covered)("searches one index and sorts nothing: %j", (query) => {
    const plan = planQuery(shape, query);
    const positions = [undefined, ...[null, 1, true, "t"].map((value) => ({ value, id: "one" }))];
    for (const after of positions) {
      for (const { sql, values } of pageSql("things", { ...plan, after })) {
        const steps = database
          .prepare(`EXPLAIN QUERY PLAN ${sql}`)
          .all(...values, 10)
          .map((row) => String(row.detail));
        expect(steps).toHaveLength(1);
        // The first page of a whole collection has nothing to search for: it walks the index, in its order.
        const walks = after === undefined && plan.where.length === 0;
        expect(steps[0]).toMatch(walks ? /^SCAN things USING INDEX / : /^SEARCH things USING INDEX /);
        // As deep into the index as there are conditions, or it would read what it then throws away.
        const searched = steps[0]?.match(/<expr>[=<>]|id[<>]/g)?.length ?? 0;
        expect(searched).toBe((sql.match(/json_extract\([^)]*\) (=|>|<|>=|IS)/g)?.length ?? 0) + (/\bid [<>]/.test(sql) ? 1 : 0));
      }
    }
  });

  it("was looked at in more than a few forms", () => {
    expect(covered.length).toBeGreaterThan(15);
  });
});

describe("records/sqlite: several processes", () => {
  it("opens a new file, in the end, that another process holds for a while", async () => {
    const path = join(folder, "held.db");
    const hold = `const held = new (require("node:sqlite").DatabaseSync)(process.argv[1]);
      held.exec("BEGIN EXCLUSIVE"); process.send("held"); setTimeout(() => (held.close(), process.disconnect()), 500);`;
    const holder = spawn(process.execPath, ["-e", hold, path], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    await once(holder, "message");
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    await port.collection<Note>({ name: "notes" }).put("one", { text: "t" });
    await close();
  });

  it("loses no write of any, and gives no version twice", async () => {
    const path = newPath();
    const script = join(import.meta.dirname, "processes/put-records.ts");
    const children = ["a", "b", "c"].map((name) => fork(script, [path, name, "200"]));
    await Promise.all(children.map((child) => once(child, "message")));
    const versions = await Promise.all(
      children.map(async (child) => {
        const answered = once(child, "message");
        child.send("go");
        const [[answer]] = await Promise.all([answered, once(child, "exit")]);
        return answer as number[];
      }),
    );
    expect(new Set(versions.flat()).size).toBe(600);
    const { port, close } = await openAdapter(sqliteRecords({ path }));
    expect((await port.collection<Note>({ name: "notes" }).query({ limit: 1000 })).items).toHaveLength(600);
    await close();
  });
});
