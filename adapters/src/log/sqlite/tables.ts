import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import { inOneCommit } from "../../records/sqlite/in-one-commit.ts";

/** Of these tables' layout; kept in a row of its own, for the file's own version is that of the records. */
const FORMAT = 1;

/**
 * An entry's place is its stream's number and its sequence in one integer, so that the entries of a stream lie side by side in one
 * tree. Numbers are never used again: entries of a removed stream that are still there are nobody's.
 */
const TABLES = `
  CREATE TABLE "_log_format" (format INTEGER NOT NULL);
  INSERT INTO "_log_format" VALUES (${FORMAT});
  CREATE TABLE "_log_streams" (number INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL UNIQUE, newest INTEGER NOT NULL);
  CREATE TABLE "_log_entries" (place INTEGER PRIMARY KEY, entry TEXT NOT NULL);
  CREATE TABLE "_log_removed" (number INTEGER PRIMARY KEY);
`;

/** Make the log's tables where they are missing. Throws LogUnavailable for those of a newer version, or what SQLite throws. */
export function makeTables(database: DatabaseSync): void {
  if (isMade(database)) return;
  inOneCommit(database, () => {
    // Another process may have made them since.
    if (!isMade(database)) database.exec(TABLES);
  });
}

function isMade(database: DatabaseSync): boolean {
  if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_log_format'").get()) return false;
  if (database.prepare(`SELECT format FROM "_log_format"`).get()?.["format"] === FORMAT) return true;
  throw new ports.LogUnavailable("The log's tables were written by a newer version");
}
