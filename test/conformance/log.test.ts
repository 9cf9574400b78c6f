import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryLog } from "@portico/adapters/log/memory";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { afterAll } from "vitest";
import { logConformance } from "./log.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-log-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const newFile = (): string => join(folder, `${++files}.db`);

logConformance("memory", () => ({ adapter: memoryLog(), others: [memoryRecords()] }));
logConformance("sqlite, in the records' file", () => ({ adapter: sqliteLog({}), others: [sqliteRecords({ path: newFile() })] }), {
  shared: true,
});
logConformance("sqlite, in a file of its own", () => ({ adapter: sqliteLog({ path: newFile() }), others: [memoryRecords()] }), {
  shared: true,
});
