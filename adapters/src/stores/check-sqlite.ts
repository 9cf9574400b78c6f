import type { SqliteReading } from "./sqlite-reading.ts";

/** What is wrong with rows of an SQLite file of `sqliteStore`. */
export interface StoreFault {
  /** What the names are: `records that cannot be read`. */
  readonly what: string;
  /** The number of all of them. */
  readonly count: number;
  /** The first names. */
  readonly names: readonly string[];
}

/**
 * Checks what SQLite does not check: that every record, entry and note can be read and belongs to something. Reads all rows, in one
 * snapshot, and changes nothing. At most `limit` names of each fault are returned. Throws the errors of SQLite.
 */
export function findStoreFaults({ database, hasTable }: SqliteReading, limit: number): readonly StoreFault[] {
  const column = (sql: string): Iterable<string> =>
    (function* () {
      for (const row of database.prepare(sql).iterate()) yield String(Object.values(row)[0]);
    })();
  const found = (what: string, names: Iterable<string>): StoreFault[] => {
    const first: string[] = [];
    let count = 0;
    for (const name of names) if (++count <= limit) first.push(name);
    return count === 0 ? [] : [{ what, count, names: first }];
  };
  function* unreadable(): Iterable<string> {
    const tables = [...column("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")];
    for (const table of tables.filter((name) => !/^(?:_|sqlite_)/.test(name))) {
      for (const id of column(`SELECT id FROM "${table}" WHERE NOT json_valid(value)`)) yield `${table}/${id}`;
    }
  }

  database.exec("BEGIN");
  try {
    return [
      ...found("records that cannot be read", unreadable()),
      ...(hasTable("_log_entries")
        ? [
            ...found("streams of the log with entries that are missing or cannot be read", column(DAMAGED_STREAMS)),
            ...found("streams of the log without a name", column(NAMELESS_STREAMS)),
          ]
        : []),
      ...(hasTable("_engine_notes") ? found("works of the engine that have notes and no entry", column(LOST_WORKS)) : []),
    ];
  } finally {
    database.exec("ROLLBACK");
  }
}

/** The entries of a stream are adjacent: its number is the upper half of their key. */
const DAMAGED_STREAMS = `
  SELECT stream FROM "_log_streams" AS s WHERE newest <> (
    SELECT count(*) FROM "_log_entries" WHERE place BETWEEN (s.number << 32) + 1 AND (s.number << 32) + 0xffffffff AND json_valid(entry)
  ) ORDER BY stream`;
const NAMELESS_STREAMS = `
  SELECT DISTINCT place >> 32 AS number FROM "_log_entries"
  WHERE number NOT IN (SELECT number FROM "_log_streams") AND number NOT IN (SELECT number FROM "_log_removed")`;
const LOST_WORKS = `SELECT DISTINCT work FROM "_engine_notes" WHERE work NOT IN (SELECT work FROM "_engine_work")`;
