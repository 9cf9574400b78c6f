import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { inspect } from "node:util";
import { postgresLog } from "@portico/cluster/log/postgres";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { createLocks } from "@portico/cluster/records/postgres/locks";
import { postgresStoreOf } from "@portico/cluster/records/postgres/store";
import { migratePostgresStore } from "@portico/cluster/stores/postgres";
import { findStoreMismatch, ports, Secret } from "@portico/core";
import { Client } from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkCollection } from "../../adapters/src/records/collection-shape.ts";
import { pageSql } from "../../adapters/cluster/src/records/postgres/page-sql.ts";
import { planQuery } from "../../adapters/src/records/query-plan.ts";
import { postgresDatabase, sayThatTestsAreSkipped } from "../harness/postgres.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const database = await postgresDatabase();
if (!database) sayThatTestsAreSkipped();
afterAll(() => database?.drop());

/** What a filter on the kind of a field looks like in a plan. */
const KIND_CONDITION = /json_typeof\([^)]*\)\) = '\w+'::text/g;

/** For a few rows the database may choose to sort: here it says what it would do for many. */
const PLAIN_PLANS = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off";

interface Note {
  text: string;
}

describe.skipIf(!database)("records/postgres", () => {
  const { url, query } = database ?? { url: "", query: async () => [] };
  let schema: string;
  let schemas = 0;
  let opened: OpenAdapter<ports.Records>;
  let notes: ports.Collection<Note>;
  beforeEach(async () => {
    schema = `tested_${++schemas}`;
    opened = await openAdapter(postgresRecords({ url, schema }));
    notes = opened.port.collection<Note>({ name: "notes" });
  });
  afterEach(() => opened.close());

  const endAllConnections = () =>
    query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );

  it("looks for the tables of its collections without taking its whole pool", async () => {
    const own = `postgres_first_${schema}`;
    const named = new URL(url);
    named.searchParams.set("application_name", own);
    const many = await openAdapter(postgresRecords({ url: named.href, schema, poolSize: 10 }));
    const collections = Array.from({ length: 40 }, (_, at) => many.port.collection<Note>({ name: `first-${at}` }));
    expect(await Promise.all(collections.map((each) => each.get("x")))).toEqual(collections.map(() => undefined));
    const [{ count }] = (await query(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = '${own}'`,
    )) as any;
    expect(count).toBeLessThan(5);
    expect(count).toBeGreaterThan(0);
    await many.close();
  });

  describe("beside another process that is writing", () => {
    /** Another process in the middle of a transaction that changes these records. */
    const writing = async (ids: readonly string[]): Promise<AsyncDisposable> => {
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(`BEGIN; ${createLocks(schema).writers(ids.map((id) => `notes/${id}`))}`);
      return { [Symbol.asyncDispose]: () => client.end() };
    };
    const some = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name}-${at}`);
    const put = (ids: readonly string[]) => Promise.all(ids.map((id) => notes.put(id, { text: "t" })));

    it("writes other records, hundreds of them, without waiting", async () => {
      await using _other = await writing(some("theirs", 200));
      expect(await put(some("ours", 200))).toHaveLength(200);
    });

    it("waits where it writes the same, also in a batch of more records than a server has locks for", async () => {
      const other = await writing(["shared"]);
      let isOver = false;
      const batch = opened.port.batch(["shared", ...some("ours", 9000)].map((id) => notes.write.put(id, { text: "b" })));
      const done = [put(["shared"]), batch].map((each) => each.then(() => void (isOver = true)));
      const waiting = "SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
      await expect.poll(async () => (await query(waiting))[0].count, { timeout: 30_000 }).toBeGreaterThan(0);
      expect(isOver).toBe(false);
      await other[Symbol.asyncDispose]();
      await Promise.all(done);
      expect((await notes.get("ours-8999"))?.value).toEqual({ text: "b" });
    });

    it("has its locks after 5 s where that process stands still", async () => {
      const { read } = postgresStoreOf(opened.port)!;
      const { rows } = await read((client) => client.query("SHOW idle_in_transaction_session_timeout"));
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: "5s" }]);
    });
  });

  describe("when connections end", () => {
    it("goes on with others, and the process lives", async () => {
      await Promise.all(Array.from({ length: 20 }, (_, at) => notes.put(`note-${at}`, { text: "t" })));
      await Promise.all(Array.from({ length: 20 }, (_, at) => notes.get(`note-${at}`)));
      await endAllConnections();
      expect((await notes.get("note-1"))?.value).toEqual({ text: "t" });
      await endAllConnections();
      await notes.put("note-1", { text: "u" });
      expect((await notes.query()).items).toHaveLength(20);
    });

    it("has every write that it acknowledged, refuses others as unavailable, and recovers", async () => {
      const acknowledged: string[] = [];
      const refused: unknown[] = [];
      let ended = false;
      const writeOn = async (writer: number): Promise<void> => {
        for (let at = 0; !ended; at++) {
          const id = `${writer}-${at}`;
          await notes.put(id, { text: "t" }).then(
            () => acknowledged.push(id),
            (error: unknown) => refused.push(error),
          );
        }
      };
      const writers = Array.from({ length: 16 }, (_, writer) => writeOn(writer));
      for (let round = 0; round < 20 || acknowledged.length < 200; round++) {
        await new Promise((resolve) => setTimeout(resolve, (round % 10) * 5));
        await endAllConnections();
      }
      ended = true;
      await Promise.all(writers);
      for (const error of refused) expect(error).toBeInstanceOf(ports.RecordsUnavailable);
      await notes.put("after", { text: "t" });
      const found = new Set((await query(`SELECT id FROM ${schema}.notes`)).map(({ id }) => id as string));
      expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
    });

    it("says that it is unavailable where no server answers, and nothing of the password", async () => {
      const password = "correct-horse";
      const urls = [
        `postgres://someone:${password}@127.0.0.1:1/nowhere`,
        `postgres://someone:${password}@host.invalid/nowhere`,
        withPassword(url, password).replace(/portico_test_\w+/, "portico_test_none"),
        `socket:/nowhere-${schema}?db=x&user=someone&password=${password}`,
      ];
      for (const wrong of urls) {
        const error: unknown = await openAdapter(postgresRecords({ url: new Secret(wrong) })).catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(ports.RecordsUnavailable);
        expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(password);
      }
      const error: unknown = await openAdapter(postgresRecords({ url: `postgres://a:${password}@[::x/` })).catch(
        (e: unknown) => e,
      );
      expect(error).toBeInstanceOf(TypeError);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(password);
    });

    it("waits for writes when it closes, and leaves no connection", async () => {
      const name = `closing-${schema}`;
      const other = await openAdapter(postgresRecords({ url: withName(url, name), schema }));
      const same = other.port.collection<Note>({ name: "notes" });
      const written = Promise.all(Array.from({ length: 1500 }, (_, at) => same.put(`note-${at}`, { text: "t" })));
      await other.close();
      expect(await written).toHaveLength(1500);
      const left = "SELECT 1 FROM pg_stat_activity WHERE application_name = $1";
      await expect.poll(() => query(left, [name])).toEqual([]);
    });
  });

  describe("writes at the same time", () => {
    it("share a transaction, and a conflict of one does not affect the others", async () => {
      const { version } = await notes.put("taken", { text: "old" });
      const outcomes = await Promise.allSettled([
        ...Array.from({ length: 50 }, (_, at) => notes.put(`note-${at}`, { text: "t" })),
        notes.put("taken", { text: "no" }, "absent"),
        notes.put("taken", { text: "new" }, version),
        notes.put("taken", { text: "no" }, version),
        opened.port.batch([notes.write.put("half", { text: "no" }), notes.write.put("note-3", { text: "no" }, 1)]),
      ]);
      expect(outcomes.flatMap(({ status }, at) => (status === "rejected" ? at : []))).toEqual([50, 52, 53]);
      expect((await notes.get("taken"))?.value).toEqual({ text: "new" });
      expect(await notes.get("half")).toBeUndefined();
      expect(await query(`SELECT count(DISTINCT xmin::text)::int AS commits FROM ${schema}.notes`)).toEqual([{ commits: 1 }]);
    });

    it("fails alone where the database refuses it", async () => {
      const lost = opened.port.collection<Note>({ name: "lost" });
      await lost.put("one", { text: "t" });
      await query(`DROP TABLE ${schema}.lost`);
      const outcomes = await Promise.allSettled([
        notes.put("one", { text: "t" }),
        lost.put("two", { text: "t" }),
        notes.put("two", { text: "t" }, "absent"),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(outcomes[1]).toMatchObject({ reason: { name: "RecordsUnavailable", cause: { code: "42P01" } } });
      expect((await notes.query()).items).toHaveLength(2);
    });

    it("lets one of two stores win each race, and versions of a record grow", async () => {
      const other = await openAdapter(postgresRecords({ url, schema }));
      const theirs = other.port.collection<Note>({ name: "notes" });
      let current = await notes.put("raced", { text: "0" });
      for (let round = 0; round < 50; round++) {
        const outcomes = await Promise.allSettled(
          [notes, theirs].map((each, at) => each.put("raced", { text: `${at}` }, current.version)),
        );
        const won = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value : []));
        expect(won).toHaveLength(1);
        expect(won[0]!.version).toBeGreaterThan(current.version);
        current = won[0]!;
      }
      await other.close();
    });

    it("of two stores that touch the same records in other orders do not wait for each other for ever", async () => {
      const other = await openAdapter(postgresRecords({ url, schema }));
      const theirs = other.port.collection<Note>({ name: "notes" });
      const ids = Array.from({ length: 40 }, (_, at) => `note-${at}`);
      const put = (each: ports.Collection<Note>, order: readonly string[]) => order.map((id) => each.put(id, { text: "t" }));
      for (let round = 0; round < 20; round++) await Promise.all([...put(notes, ids), ...put(theirs, ids.toReversed())]);
      expect((await notes.query()).items).toHaveLength(40);
      await other.close();
    });

    it("loses no write of any process, and gives no version twice", async () => {
      const script = join(import.meta.dirname, "processes/put-records.ts");
      const children = ["a", "b", "c"].map((name) => fork(script, [url, name, "200"]));
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
      expect(await query("SELECT count(*)::int AS count FROM portico.notes")).toEqual([{ count: 600 }]);
    });
  });

  describe("keys", () => {
    const order = (direction: "ascending" | "descending") => ({ by: "text", direction }) as const;
    const walk = async (from: ports.Collection<Note>, asked: ports.Query): Promise<string[]> => {
      const found: string[] = [];
      let after: string | undefined;
      do {
        const page: ports.Page<Note> = await from.query({ ...asked, after });
        found.push(...page.items.map((item) => item.id));
        after = page.next;
      } while (after !== undefined);
      return found;
    };

    it("of any length order and match by all of their bytes", async () => {
      const long = opened.port.collection<Note>({ name: "long", indexes: { text: ["text"], both: ["owner", "text"] } });
      const same = "é".repeat(63);
      const texts = [
        "",
        same,
        `${same}a`,
        `${same}b`,
        `${same}ba`,
        `${same}${"z".repeat(9000)}`,
        `${same}${"z".repeat(9001)}`,
        "ê",
      ];
      const ids = texts.flatMap((_, at) => [`${9 - at}-a`, `${9 - at}-b`]);
      await Promise.all(ids.map((id) => long.put(id, { owner: texts[5]!, text: texts[9 - Number(id[0])]! } as Note)));
      for (const limit of [1, 2, 3, 100]) {
        for (const where of [undefined, { owner: texts[5]! }]) {
          expect(await walk(long, { where, order: order("ascending"), limit })).toEqual(ids);
          expect(await walk(long, { where, order: order("descending"), limit })).toEqual(ids.toReversed());
        }
      }
      for (const [at, text] of texts.entries())
        expect(await walk(long, { where: { text } })).toEqual([`${9 - at}-a`, `${9 - at}-b`]);
    });

    it("are found beside what PostgreSQL takes for no JSON, and keep backslashes", async () => {
      const odd = opened.port.collection({ name: "odd", indexes: { text: ["text"], deep: ["deep.text"] } });
      const texts = ["plain", "\\u0000", "\\", "\\\\", '\\"', "\\\\u0000", "\u0001", "\\ud800", "\u{1f680}", "\u2028", "\b\f"];
      for (const [at, text] of texts.entries()) {
        const value = { "\0": "\0", half: "\\\ud800", "deep\0": { text: "no" }, text, deep: { text, other: "\\\0\ud9ff" } };
        await odd.put(`${at}`, value);
        expect((await odd.get(`${at}`))?.value).toEqual(value);
      }
      for (const [at, text] of texts.entries()) {
        expect((await odd.query({ where: { text } })).items.map((item) => item.id)).toEqual([`${at}`]);
        expect((await odd.query({ where: { "deep.text": text } })).items.map((item) => item.id)).toEqual([`${at}`]);
      }
    });

    it("of the longest names and of eight fields fit", async () => {
      const fields = Array.from({ length: 8 }, (_, at) => `${"x".repeat(63)}.${"y".repeat(60)}${at}`);
      const name = "n".repeat(63);
      const where = Object.fromEntries(fields.map((field) => [field, "w".repeat(5000)]));
      const value = { ["x".repeat(63)]: Object.fromEntries(fields.map((field) => [field.split(".")[1], "w".repeat(5000)])) };
      const [one, two] = ["a", "b"].map((end) => opened.port.collection({ name: name + end, indexes: { all: fields } }));
      const id = "\u{fffd}".repeat(512);
      await one!.put(id, value);
      expect((await one!.query({ where })).items.map((item) => item.id)).toEqual([id]);
      expect((await two!.query({ where })).items).toEqual([]);
    });

    it("are kept for what a process writes that knows of fewer indexes", async () => {
      const other = await openAdapter(postgresRecords({ url, schema }));
      const grown = other.port.collection<Note>({ name: "notes", indexes: { text: ["text"] } });
      await grown.query();
      await notes.put("one", { text: "t" });
      expect((await grown.query({ where: { text: "t" } })).items.map((item) => item.id)).toEqual(["one"]);
      await other.close();
    });
  });

  it("answers every query that an index covers from it, and sorts nothing", async () => {
    const spec = { name: "things", indexes: { rank: ["rank"], both: ["group", "rank"], at: ["nested.at"] } };
    const shape = checkCollection(spec);
    await opened.port.collection(spec).query();
    // As many as it takes for the database to see that an index is worth it.
    await query(`INSERT INTO ${schema}.things (id, version, value) SELECT at, at,
      json_build_object('note', repeat('x', 1500), 'group', 'g' || at / 100, 'rank', at % 100, 'nested', json_build_object('at', at))
      FROM generate_series(1, 5000) AS at`);
    await query(`ANALYZE ${schema}.things`);
    const wheres: ports.Query["where"][] = [{}, { group: "g7" }, { rank: 5 }, { group: "g7", rank: 1 }, { "nested.at": 2 }];
    const orders = [undefined, ...(["ascending", "descending"] as const).map((direction) => ({ by: "rank", direction }))];
    let looked = 0;
    for (const where of wheres) {
      for (const by of orders) {
        const plan = planned(() => planQuery(shape, { where, order: by }));
        if (!plan) continue;
        for (const after of [undefined, ...[20, 50].map((value) => ({ value, id: "2500" }))]) {
          const { text, values } = pageSql(schema, shape, { ...plan, after }, false);
          const steps = await explain(text, values);
          expect(steps.join("\n")).not.toMatch(/Sort|Seq Scan|Bitmap/);
          // Whatever is not searched in the index is thrown away after it was read.
          const filters = steps.filter((step) => step.includes("Filter: ")).map((step) => step.replaceAll(KIND_CONDITION, ""));
          for (const filter of filters) expect(filter).toMatch(/^ *Filter: [()AND ]*$/);
          looked++;
        }
      }
    }
    expect(looked).toBeGreaterThan(20);
  });

  async function explain(text: string, values: readonly unknown[]): Promise<readonly string[]> {
    const literals = values.map((value) =>
      Buffer.isBuffer(value) ? `'\\x${value.toString("hex")}'::bytea` : `'${String(value)}'`,
    );
    const sql = text.replaceAll(/\$(\d+)/g, (_, at: string) => literals[Number(at) - 1]!);
    const rows = await query(`${PLAIN_PLANS}; EXPLAIN (COSTS OFF) ${sql}`);
    return rows.map((row) => row["QUERY PLAN"] as string);
  }

  describe("what it refuses", () => {
    const refusal = (options: Parameters<typeof postgresRecords>[0]) =>
      openAdapter(postgresRecords(options)).catch((error: unknown) => error);

    it("opens no schema that is another's, nor one of a newer version", async () => {
      await query("CREATE SCHEMA theirs; CREATE TABLE theirs.things (x int)");
      expect(String(await refusal({ url, schema: "theirs" }))).toContain("not a records store");
      await query(`UPDATE ${schema}._store SET format = 2`);
      expect(String(await refusal({ url, schema }))).toContain("newer version");
      expect(await refusal({ url, schema })).toBeInstanceOf(ports.RecordsUnavailable);
    });

    it.each([{ schema: "" }, { schema: 'a"b' }, { schema: "pg_own" }, { schema: "Big" }, { poolSize: 0 }, { poolSize: 1.5 }])(
      "takes no %j",
      async (options) => expect(await refusal({ url, ...options })).toBeInstanceOf(TypeError),
    );

    it("refuses a damaged record, without its content in the error", async () => {
      await notes.put("one", { text: "t" });
      await query(`UPDATE ${schema}.notes SET value = '{"text": hidden'`);
      const error: unknown = await notes.get("one").catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ports.RecordsUnavailable);
      expect(inspect(error, { depth: 10 })).not.toContain("hidden");
    });
  });

  describe("told not to migrate", () => {
    const open = (name: string) =>
      openAdapter(postgresLog({}), [postgresRecords({ url, schema: name, migrate: false })]).then(({ close }) => close());
    const refusalOf = async (name: string): Promise<Error> => {
      const error: unknown = await open(name).catch((thrown: unknown) => thrown);
      expect(findStoreMismatch(error)?.message).toBe((error as Error).message);
      return error as Error;
    };

    it("refuses a schema that does not exist, and makes nothing", async () => {
      const error = await refusalOf(`${schema}_none`);
      expect(error).toBeInstanceOf(ports.RecordsUnavailable);
      expect(error.message).toBe("The records store does not exist yet: run `portico migrate` with this version first");
      expect(await query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [`${schema}_none`])).toEqual([]);
    });

    it("refuses a schema without the log, and opens it after a migration", async () => {
      const error = await refusalOf(schema);
      expect(error).toBeInstanceOf(ports.LogUnavailable);
      expect(error.message).toContain("The log does not exist yet");
      await Promise.all(Array.from({ length: 3 }, () => migratePostgresStore({ url, schema })));
      await open(schema);
      await migratePostgresStore({ url, schema: `${schema}_fresh` });
      await open(`${schema}_fresh`);
    });

    it("opens a newer schema that says it was only added to, and refuses another newer one", async () => {
      await migratePostgresStore({ url, schema });
      await query(`ALTER TABLE ${schema}._store ADD COLUMN oldest integer; UPDATE ${schema}._store SET format = 3, oldest = 1`);
      await open(schema);
      expect(await openAdapter(postgresRecords({ url, schema })).then(({ close }) => close())).toBeUndefined();
      expect(await query(`SELECT * FROM ${schema}._store`)).toEqual([{ format: 3, oldest: 1 }]);
      await query(`UPDATE ${schema}._store SET oldest = 2`);
      expect((await refusalOf(schema)).message).toContain("newer version");
      await expect(migratePostgresStore({ url, schema })).rejects.toThrow("newer version");
    });
  });

  it("can be opened by several at the same time where nothing is yet", async () => {
    const adapter = postgresRecords({ url, schema: `${schema}_new` });
    const stores = await Promise.all(Array.from({ length: 5 }, () => openAdapter(adapter)));
    const spec = { name: "notes", indexes: { text: ["text"] } };
    await Promise.all(stores.map(({ port }, at) => port.collection<Note>(spec).put(`${at}`, { text: "t" })));
    expect((await stores[0]!.port.collection<Note>(spec).query({ where: { text: "t" } })).items).toHaveLength(5);
    await Promise.all(stores.map((store) => store.close()));
  });
});

function planned<T>(plan: () => T): T | undefined {
  try {
    return plan();
  } catch {
    return undefined;
  }
}

function withPassword(url: string, password: string): string {
  const changed = new URL(url);
  changed.password = password;
  return changed.href;
}

function withName(url: string, name: string): string {
  const changed = new URL(url);
  changed.searchParams.set("application_name", name);
  return changed.href;
}
