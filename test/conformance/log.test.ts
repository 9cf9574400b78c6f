import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryLog } from "@portico/adapters/log/memory";
import { postgresLog } from "@portico/cluster/log/postgres";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { afterAll, describe } from "vitest";
import { postgresDatabase } from "../harness/postgres.ts";
import { logConformance } from "./log.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-log-"));
afterAll(() => rmSync(folder, { recursive: true }));
const database = await postgresDatabase();
afterAll(() => database?.drop());

let stores = 0;
const newFile = (): string => join(folder, `${++stores}.db`);

logConformance("memory", () => ({ adapter: memoryLog(), others: [memoryRecords()] }));
logConformance("sqlite, in the records' file", () => ({ adapter: sqliteLog({}), others: [sqliteRecords({ path: newFile() })] }), {
  shared: true,
});
logConformance("sqlite, in a file of its own", () => ({ adapter: sqliteLog({ path: newFile() }), others: [memoryRecords()] }), {
  shared: true,
});
describe.skipIf(!database)("with a PostgreSQL server", () => {
  const newStore = () => ({ url: database!.url, schema: `store_${++stores}` });
  const together = () => ({ adapter: postgresLog({}), others: [postgresRecords(newStore())] });
  const apart = () => ({ adapter: postgresLog(newStore()), others: [memoryRecords()] });
  logConformance("postgres, in the records' schema", together, { shared: true });
  logConformance("postgres, in a schema of its own", apart, { shared: true });
});
