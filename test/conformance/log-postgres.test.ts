import { inspect } from "node:util";
import { postgresLog } from "@portico/cluster/log/postgres";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { findStoreTooNew, ports } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { postgresDatabase } from "../harness/postgres.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const database = await postgresDatabase();
afterAll(() => database?.drop());

describe.skipIf(!database)("log/postgres", () => {
  const { url, query } = database ?? { url: "", query: async () => [] };
  let schema: string;
  let schemas = 0;
  let opened: OpenAdapter<ports.EventLog>;
  const open = () => openAdapter(postgresLog({}), [postgresRecords({ url, schema })]);
  beforeEach(async () => {
    schema = `tested_${++schemas}`;
    opened = await open();
  });
  afterEach(() => opened.close());

  const read = async (options?: ports.ReadOptions): Promise<readonly (string | false)[]> => {
    const found: (string | false)[] = [];
    for await (const each of opened.port.read("a", options)) found.push(each.damaged ? false : (each.entry["text"] as string));
    return found;
  };

  describe("a damaged log", () => {
    it.each(["{", "", "[]", '"x"', "null"])("yields %j as damaged, counts it, and reads on", async (text) => {
      for (const each of ["1", "2", "3"]) await opened.port.append("a", { text: each });
      await query(`UPDATE ${schema}._log_entries SET entry = $1 WHERE sequence = 2`, [text]);
      expect(await read()).toEqual(["1", false, "3"]);
      expect(await read({ backwards: true, limit: 2 })).toEqual(["3", false]);
      expect(await opened.port.count("a")).toBe(3);
      expect(await opened.port.append("a", { text: "4" })).toBe(4);
    });

    it("yields an entry that is larger than any that is taken as damaged", async () => {
      for (const each of ["1", "2", "3"]) await opened.port.append("a", { text: each });
      const large = `'{"text":"' || repeat('x', ${ports.LOG_ENTRY_BYTES}) || '"}'`;
      await query(`UPDATE ${schema}._log_entries SET entry = ${large} WHERE sequence = 2`);
      expect(await read()).toEqual(["1", false, "3"]);
    });
  });

  it("reads a stream of large entries in small pages", async () => {
    const text = "x".repeat(400_000);
    await opened.port.appendAll(Array.from({ length: 12 }, (_, at) => ({ stream: "a", entry: { text: `${at}${text}` } })));
    expect((await read()).map((each) => String(each).replace(text, ""))).toEqual(Array.from({ length: 12 }, (_, at) => `${at}`));
    expect(await read({ backwards: true, limit: 4 })).toHaveLength(4);
  });

  it("is in one transaction with the records that it is appended with", async () => {
    let records!: ports.Records;
    const adapter = postgresRecords({ url, schema });
    const seen: typeof adapter = {
      ...adapter,
      spec: {
        ...adapter.spec,
        open: async (...given: Parameters<typeof adapter.spec.open>) => (records = await adapter.spec.open(...given)),
      },
    };
    const log = await openAdapter(postgresLog({}), [seen]);
    const notes = records.collection<{ text: string }>({ name: "notes" });
    await log.port.appendAll([{ stream: "a", entry: { text: "1" } }], { records: [notes.write.put("one", { text: "1" })] });
    const commits = `SELECT (SELECT xmin::text FROM ${schema}.notes) = (SELECT xmin::text FROM ${schema}._log_entries) AS same`;
    expect(await query(commits)).toEqual([{ same: true }]);
    await log.close();
  });

  it("appends on when connections ended, without a gap", async () => {
    const sequences: number[] = [];
    for (let round = 0; round < 10; round++) {
      const appended = await Promise.allSettled(
        Array.from({ length: 10 }, (_, at) => opened.port.append("a", { text: `${at}` })),
      );
      for (const each of appended) {
        if (each.status === "fulfilled") sequences.push(each.value);
        else expect(each.reason).toBeInstanceOf(ports.LogUnavailable);
      }
      await query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      );
    }
    expect(new Set(sequences).size).toBe(sequences.length);
    expect(await opened.port.count("a")).toBe((await read()).length);
    expect(Math.max(...sequences)).toBeLessThanOrEqual(await opened.port.count("a"));
  });

  it("leaves nothing of a removed stream, also when the process ends before everything is out", async () => {
    await opened.port.appendAll(Array.from({ length: 2500 }, () => ({ stream: "a", entry: { text: "x" } })));
    await opened.port.append("b", { text: "stays" });
    await opened.port.remove("a");
    await opened.close();
    opened = await open();
    const left = `SELECT (SELECT count(*)::int FROM ${schema}._log_entries) AS entries,
      (SELECT count(*)::int FROM ${schema}._log_removed) AS removed`;
    await expect.poll(() => query(left), { timeout: 30_000 }).toEqual([{ entries: 1, removed: 0 }]);
  });

  describe("opening", () => {
    it("refuses tables of a newer version with LogUnavailable", async () => {
      await query(`UPDATE ${schema}._log_format SET format = 2`);
      const error: unknown = await open().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ports.LogUnavailable);
      expect(findStoreTooNew(error)?.message).toContain("it has format 2");
    });

    it("asks for a url where the records are not in PostgreSQL", async () => {
      await expect(openAdapter(postgresLog({}), [memoryRecords()])).rejects.toThrow(TypeError);
    });

    it("refuses with LogUnavailable where no server answers, and says nothing of the password", async () => {
      const adapter = postgresLog({ url: "postgres://someone:correct-horse@127.0.0.1:1/nowhere" });
      const error: unknown = await openAdapter(adapter, [memoryRecords()]).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ports.LogUnavailable);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("correct-horse");
    });

    it("makes its tables once when several open at the same time", async () => {
      const adapter = postgresLog({ url, schema: `${schema}_new` });
      const logs = await Promise.all(Array.from({ length: 4 }, () => openAdapter(adapter, [memoryRecords()])));
      const sequences = await Promise.all(logs.flatMap(({ port }) => [port.append("a", {}), port.append("a", {})]));
      expect(sequences.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      await Promise.all(logs.map((log) => log.close()));
    });
  });
});
