import type { DatabaseSync } from "node:sqlite";
import { layTables } from "../../records/sqlite/lay-tables.ts";

/** Parked work is open, but a starting process does not read it. Therefore executing work has its own index. */
const PARKING_INDEXES = `
  CREATE INDEX "_engine_executing" ON "_engine_work" (kind, work) WHERE state = 'executing';
  CREATE INDEX "_engine_due" ON "_engine_work" (due) WHERE due IS NOT NULL;
`;

/**
 * `_engine_work` has one small row per work. The input and the stored results of a work are in `_engine_notes`, and are deleted
 * when it ends. Each index covers only the rows that it is used for: the queue has work that may begin, `open` has work that has
 * not ended, `due` has work that is parked until a time. `awaited` has the signals that parked work waits for, until it executes
 * again.
 */
const TABLES = `
  CREATE TABLE "_engine_owner" (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    format INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT NOT NULL, until INTEGER NOT NULL
  );
  INSERT INTO "_engine_owner" VALUES (1, 0, 0, '', 0);
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

/**
 * Steps from one format of these tables to the next. The owner's row holds their format, because the file's own version belongs
 * to the records.
 */
const STEPS: readonly string[] = [
  `
    ALTER TABLE "_engine_work" ADD COLUMN due INTEGER;
    ALTER TABLE "_engine_work" ADD COLUMN awaited TEXT;
    ${PARKING_INDEXES}
  `,
];
/** The newest format of the journal's tables. */
export const JOURNAL_FORMAT: number = STEPS.length + 1;

/** Create missing tables of the journal, and convert those of an earlier format. Throws StoreTooNew, or the error of SQLite. */
export function makeTables(database: DatabaseSync): void {
  layTables(database, {
    store: "The engine's journal",
    format() {
      if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_engine_owner'").get()) return undefined;
      return database.prepare(`SELECT format FROM "_engine_owner"`).get()?.["format"] ?? Number.NaN;
    },
    make: () => database.exec(TABLES),
    steps: STEPS,
    mark: (format) => `UPDATE "_engine_owner" SET format = ${format}`,
  });
}
