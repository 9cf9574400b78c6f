import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { afterAll } from "vitest";
import { recordsConformance } from "./records.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-records-"));
afterAll(() => rmSync(folder, { recursive: true }));

let stores = 0;
recordsConformance("memory", () => memoryRecords());
recordsConformance("sqlite", () => sqliteRecords({ path: join(folder, `${++stores}.db`) }), { shared: true });
