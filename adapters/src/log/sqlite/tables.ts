import type { DatabaseSync } from "node:sqlite";
import { layTables } from "../../records/sqlite/lay-tables.ts";

/**
 * Steps from one format of these tables to the next. A separate row holds their format, because the file's own version belongs to
 * the records.
 */
const STEPS: readonly string[] = [];
/** The newest format of the log's tables. */
export const LOG_FORMAT: number = STEPS.length + 1;

/**
 * The key of an entry is its stream's number and its sequence in one integer, so that the entries of a stream are adjacent in one
 * tree. Numbers are never reused: remaining entries of a removed stream are orphaned.
 */
const TABLES = `
  CREATE TABLE "_log_format" (format INTEGER NOT NULL);
  INSERT INTO "_log_format" VALUES (0);
  CREATE TABLE "_log_streams" (number INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL UNIQUE, newest INTEGER NOT NULL);
  CREATE TABLE "_log_entries" (place INTEGER PRIMARY KEY, entry TEXT NOT NULL);
  CREATE TABLE "_log_removed" (number INTEGER PRIMARY KEY);
`;

/** Create missing tables of the log, and convert those of an earlier format. Throws StoreTooNew, or the error of SQLite. */
export function makeTables(database: DatabaseSync): void {
  layTables(database, {
    store: "The log",
    format() {
      if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_log_format'").get()) return undefined;
      return database.prepare(`SELECT format FROM "_log_format"`).get()?.["format"] ?? Number.NaN;
    },
    make: () => database.exec(TABLES),
    steps: STEPS,
    mark: (format) => `UPDATE "_log_format" SET format = ${format}`,
  });
}
