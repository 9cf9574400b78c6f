import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { findStoreTooNew, ports } from "@portico/core";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-log-sqlite-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
let path: string;
let opened: OpenAdapter<ports.EventLog>;
beforeEach(async () => {
  path = join(folder, `${++files}.db`);
  opened = await openAdapter(sqliteLog({}), [sqliteRecords({ path })]);
});
afterEach(() => opened.close());

/** As a person with a database tool would. */
function meddle(statement: string, ...values: (string | number)[]): void {
  const database = new DatabaseSync(path);
  database.prepare(statement).run(...values);
  database.close();
}

async function read(options?: ports.ReadOptions): Promise<readonly (string | false)[]> {
  const found: (string | false)[] = [];
  for await (const each of opened.port.read("a", options)) found.push(each.damaged ? false : (each.entry["text"] as string));
  return found;
}

describe("a damaged log", () => {
  it.each([
    ["no JSON", "{"],
    ["nothing", ""],
    ["a list", "[]"],
    ["a text", '"x"'],
    ["null", "null"],
  ])("yields an entry that is %s as damaged, counts it, and reads on", async (_what, text) => {
    for (const each of ["1", "2", "3"]) await opened.port.append("a", { text: each });
    meddle(`UPDATE "_log_entries" SET entry = ? WHERE place & 0xffffffff = 2`, text);
    expect(await read()).toEqual(["1", false, "3"]);
    expect(await read({ backwards: true, limit: 2 })).toEqual(["3", false]);
    expect(await opened.port.count("a")).toBe(3);
    expect(await opened.port.append("a", { text: "4" })).toBe(4);
  });

  it("yields an entry that is larger than any that is taken as damaged, without reading it", async () => {
    for (const each of ["1", "2", "3"]) await opened.port.append("a", { text: each });
    meddle(
      `UPDATE "_log_entries" SET entry = '{"text":"' || hex(zeroblob(?)) || '"}' WHERE place & 0xffffffff = 2`,
      9 * 1024 * 1024,
    );
    expect(await read()).toEqual(["1", false, "3"]);
  });
});

describe("a removed stream", () => {
  it("leaves nothing in the file, also when the process ends before everything is out", async () => {
    await opened.port.appendAll(Array.from({ length: 1200 }, () => ({ stream: "a", entry: { text: "x" } })));
    await opened.port.append("b", { text: "stays" });
    await opened.port.remove("a");
    await opened.close();
    opened = await openAdapter(sqliteLog({}), [sqliteRecords({ path })]);
    const left = () => {
      const database = new DatabaseSync(path);
      const { entries, removed } = database
        .prepare(`SELECT (SELECT count(*) FROM "_log_entries") AS entries, (SELECT count(*) FROM "_log_removed") AS removed`)
        .get() as { entries: number; removed: number };
      database.close();
      return { entries, removed };
    };
    await vi.waitFor(() => expect(left()).toEqual({ entries: 1, removed: 0 }), { timeout: 30_000 });
  });
});

describe("opening", () => {
  it("refuses tables of a newer version with LogUnavailable", async () => {
    meddle(`UPDATE "_log_format" SET format = 2`);
    const error: unknown = await openAdapter(sqliteLog({}), [sqliteRecords({ path })]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ports.LogUnavailable);
    expect(findStoreTooNew(error)?.message).toContain("it has format 2");
  });

  it("asks for a path where the records are not in SQLite", async () => {
    await expect(openAdapter(sqliteLog({}), [memoryRecords()])).rejects.toThrow(TypeError);
  });

  it("refuses a file of another format with LogUnavailable", async () => {
    const other = join(folder, "other.db");
    const database = new DatabaseSync(other);
    database.exec("CREATE TABLE something (x)");
    database.close();
    await expect(openAdapter(sqliteLog({ path: other }), [memoryRecords()])).rejects.toThrow(ports.LogUnavailable);
  });
});
