import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { afterAll, describe } from "vitest";
import { postgresDatabase } from "../harness/postgres.ts";
import { recordsConformance } from "./records.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-records-"));
afterAll(() => rmSync(folder, { recursive: true }));
const database = await postgresDatabase();
afterAll(() => database?.drop());

let stores = 0;
recordsConformance("memory", () => memoryRecords());
recordsConformance("sqlite", () => sqliteRecords({ path: join(folder, `${++stores}.db`) }), { shared: true });
describe.skipIf(!database)("with a PostgreSQL server", () => {
  const postgres = () => postgresRecords({ url: database!.url, schema: `store_${++stores}` });
  recordsConformance("postgres", postgres, { shared: true });
});
