import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import { inOneCommit } from "../../records/sqlite/in-one-commit.ts";

/** Of these tables' layout; kept in the owner's row, for the file's own version is that of the records. */
const FORMAT = 1;

/**
 * `_engine_work` has a row per work, which stays small: what a work was given and what it remembers stand in `_engine_notes`, and go when
 * it ends. No index covers more rows than are looked for through it: the line has what may begin, `open` what has not ended.
 */
const TABLES = `
  CREATE TABLE "_engine_owner" (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    format INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT NOT NULL, until INTEGER NOT NULL
  );
  INSERT INTO "_engine_owner" VALUES (1, ${FORMAT}, 0, '', 0);
  CREATE TABLE "_engine_work" (
    work INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, key TEXT NOT NULL,
    state TEXT NOT NULL, place INTEGER, attempt INTEGER NOT NULL DEFAULT 0,
    accepted INTEGER NOT NULL, ended INTEGER, output TEXT, error TEXT, reason TEXT
  );
  CREATE INDEX "_engine_line" ON "_engine_work" (kind, place) WHERE place IS NOT NULL;
  CREATE INDEX "_engine_open" ON "_engine_work" (kind, key, work) WHERE ended IS NULL;
  CREATE INDEX "_engine_ended" ON "_engine_work" (ended) WHERE ended IS NOT NULL;
  CREATE INDEX "_engine_unclosed" ON "_engine_work" (kind) WHERE state = 'unclosed';
  CREATE TABLE "_engine_notes" (
    work INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
    state TEXT NOT NULL, value TEXT,
    PRIMARY KEY (work, kind, name, number)
  ) WITHOUT ROWID;
`;

/** Make the journal's tables where they are missing. Throws EngineUnavailable for those of a newer version, or what SQLite throws. */
export function makeTables(database: DatabaseSync): void {
  if (isMade(database)) return;
  inOneCommit(database, () => {
    // Another process may have made them since.
    if (!isMade(database)) database.exec(TABLES);
  });
}

function isMade(database: DatabaseSync): boolean {
  if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_engine_owner'").get()) return false;
  if (database.prepare(`SELECT format FROM "_engine_owner"`).get()?.format === FORMAT) return true;
  throw new ports.EngineUnavailable("The engine's tables were written by a newer version");
}
