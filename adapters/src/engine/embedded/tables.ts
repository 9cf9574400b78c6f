import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import { inOneCommit } from "../../records/sqlite/in-one-commit.ts";

/** Of these tables' layout; kept in the owner's row, for the file's own version is that of the records. */
const FORMAT = 2;

/** Parked work is open and is not looked at when a process starts, so that what was executing has an index of its own. */
const PARKING_INDEXES = `
  CREATE INDEX "_engine_executing" ON "_engine_work" (kind, work) WHERE state = 'executing';
  CREATE INDEX "_engine_due" ON "_engine_work" (due) WHERE due IS NOT NULL;
`;

/**
 * `_engine_work` has a row per work, which stays small: what a work was given and what it remembers stand in `_engine_notes`, and go when
 * it ends. No index covers more rows than are looked for through it: the line has what may begin, `open` what has not ended, `due` what is
 * parked for a time. `awaited` has the signals that parked work waits for, and stays until it executes again.
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
    accepted INTEGER NOT NULL, ended INTEGER, output TEXT, error TEXT, reason TEXT,
    due INTEGER, awaited TEXT
  );
  CREATE INDEX "_engine_line" ON "_engine_work" (kind, place) WHERE place IS NOT NULL;
  CREATE INDEX "_engine_open" ON "_engine_work" (kind, key, work) WHERE ended IS NULL;
  CREATE INDEX "_engine_ended" ON "_engine_work" (ended) WHERE ended IS NOT NULL;
  CREATE INDEX "_engine_unclosed" ON "_engine_work" (kind) WHERE state = 'unclosed';
  ${PARKING_INDEXES}
  CREATE TABLE "_engine_notes" (
    work INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
    state TEXT NOT NULL, value TEXT,
    PRIMARY KEY (work, kind, name, number)
  ) WITHOUT ROWID;
`;

/** What makes tables of an earlier format those of the next; what stands in them stays. */
const MIGRATIONS: Readonly<Record<number, string>> = {
  1: `
    ALTER TABLE "_engine_work" ADD COLUMN due INTEGER;
    ALTER TABLE "_engine_work" ADD COLUMN awaited TEXT;
    ${PARKING_INDEXES}
    UPDATE "_engine_owner" SET format = 2;
  `,
};

/**
 * Make the journal's tables where they are missing, and those of an earlier format new. Throws EngineUnavailable for those of a newer
 * version, or what SQLite throws.
 */
export function makeTables(database: DatabaseSync): void {
  if (formatOf(database) === FORMAT) return;
  inOneCommit(database, () => {
    // Asked again inside: another process may have made them since.
    for (let format = formatOf(database); format !== FORMAT; format = formatOf(database)) {
      const statements = format === undefined ? TABLES : MIGRATIONS[format];
      if (statements === undefined) throw new ports.EngineUnavailable("The engine's tables were written by a newer version");
      database.exec(statements);
    }
  });
}

/** Undefined where there are no tables. */
function formatOf(database: DatabaseSync): number | undefined {
  if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_engine_owner'").get()) return undefined;
  return Number(database.prepare(`SELECT format FROM "_engine_owner"`).get()?.format);
}
