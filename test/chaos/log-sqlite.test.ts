import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { afterAll } from "vitest";
import { survivesKills } from "./kill-log.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-chaos-sqlite-"));
afterAll(() => rmSync(folder, { recursive: true }));

const path = join(folder, "log.db");
survivesKills(path, sqliteLog({}), [sqliteRecords({ path })]);
