import { ports } from "@portico/core";
import { patiently } from "../../records/sqlite/busy.ts";
import type { SqliteStore } from "../../records/sqlite/store.ts";
import type { StoredEntry } from "../create-log.ts";
import { toLogError, translated } from "../log-error.ts";
import type { PurgingBackend } from "../purging-log.ts";
import { makeTables } from "./tables.ts";

/** The sequence is the lower half of an entry's key. */
const SEQUENCE_BITS = 32n;
const NEWEST_SEQUENCE = 0xffff_ffff;
/** Maximum size of a page, exceeded by at most its last entry. */
const PAGE_BYTES = 1024 * 1024;
const PAGE_ENTRIES = 500;
/** Maximum entries of a removed stream that one transaction deletes. Limits the wait of other writers. */
const PURGE_ENTRIES = 500;

/** A log in an SQLite file, in the same commits as the records in that file. Throws LogUnavailable. */
export function openSqliteLog(store: SqliteStore): PurgingBackend {
  const { database } = store;
  translate(() => patiently(() => makeTables(database)));
  const sql = {
    next: database.prepare(
      `INSERT INTO "_log_streams" (stream, newest) VALUES (?, 1)
       ON CONFLICT (stream) DO UPDATE SET newest = newest + 1 RETURNING number, newest`,
    ),
    append: database.prepare(`INSERT INTO "_log_entries" (place, entry) VALUES ((? << 32) + ?, ?)`),
    stream: database.prepare(`SELECT number, newest FROM "_log_streams" WHERE stream = ?`),
    forwards: database.prepare(pageSql("ASC")),
    backwards: database.prepare(pageSql("DESC")),
    forget: database.prepare(`DELETE FROM "_log_streams" WHERE stream = ? RETURNING number`),
    erase: database.prepare(`UPDATE "_log_entries" SET entry = '' WHERE place = (? << 32) + ?`),
    mark: database.prepare(`INSERT INTO "_log_removed" VALUES (?)`),
    marked: database.prepare(`SELECT number FROM "_log_removed" LIMIT 1`),
    purge: database.prepare(
      `DELETE FROM "_log_entries" WHERE place IN
       (SELECT place FROM "_log_entries" WHERE place > (?1 << 32) AND place < ((?1 + 1) << 32) LIMIT ${PURGE_ENTRIES})`,
    ),
    unmark: database.prepare(`DELETE FROM "_log_removed" WHERE number = ?`),
  };

  const find = (stream: string) => sql.stream.get(stream) as { readonly number: number; readonly newest: number } | undefined;

  const appendOne = (stream: string, text: string): number => {
    const { number, newest } = sql.next.get(stream) as { number: number; newest: number };
    if (newest > NEWEST_SEQUENCE) throw new ports.LogUnavailable("A stream of the log is full");
    sql.append.run(number, newest, text);
    return newest;
  };

  return {
    append: (entries, records) =>
      translated(
        store.transact((writeRecords) => {
          // A conflict is thrown before anything is written.
          if (records.length > 0) writeRecords();
          return entries.map(({ stream, text }) => appendOne(stream, text));
        }, records),
      ),
    page: (stream, from, limit, backwards) =>
      translate(() =>
        store.read(() => {
          const found = find(stream);
          if (!found) return [];
          const begin = Math.min(from ?? (backwards ? found.newest : 1), NEWEST_SEQUENCE);
          const number = BigInt(found.number);
          const [low, high] = backwards ? [1, begin] : [begin, NEWEST_SEQUENCE];
          const statement = backwards ? sql.backwards : sql.forwards;
          const count = Math.min(limit, PAGE_ENTRIES);
          const rows = statement.iterate(place(number, low), place(number, high), count);
          return takePage(rows as Iterable<unknown> as Iterable<PageRow>);
        }),
      ),
    count: (stream) => translate(() => store.read(() => find(stream)?.newest ?? 0)),
    async remove(stream) {
      const isRemoved = await translated(
        store.transact(() => {
          const removed = sql.forget.get(stream) as { number: number } | undefined;
          if (removed) sql.mark.run(removed.number);
          return removed !== undefined;
        }),
      );
      return isRemoved;
    },
    async erase(stream, sequences) {
      await translated(
        store.transact(() => {
          const found = find(stream);
          for (const sequence of found ? sequences : []) if (sequence <= found!.newest) sql.erase.run(found!.number, sequence);
        }),
      );
    },
    async purge(signal) {
      while (!signal.aborted) {
        const marked = store.read(() => sql.marked.get()) as { readonly number: number } | undefined;
        if (!marked) return;
        await translated(
          store.transact(() => {
            if (Number(sql.purge.run(marked.number).changes) < PURGE_ENTRIES) sql.unmark.run(marked.number);
          }),
        );
      }
    },
  };
}

interface PageRow {
  readonly sequence: number;
  readonly bytes: number;
  readonly entry: string | null;
}

/** The text of an entry over the maximum size is not even read. */
function pageSql(direction: "ASC" | "DESC"): string {
  return `SELECT place & ${NEWEST_SEQUENCE} AS sequence, octet_length(entry) AS bytes,
          CASE WHEN octet_length(entry) <= ${ports.LOG_ENTRY_BYTES} THEN entry END AS entry
          FROM "_log_entries" WHERE place BETWEEN ? AND ? ORDER BY place ${direction} LIMIT ?`;
}

function place(stream: bigint, sequence: number): bigint {
  return (stream << SEQUENCE_BITS) + BigInt(sequence);
}

function takePage(rows: Iterable<PageRow>): readonly StoredEntry[] {
  const page: StoredEntry[] = [];
  let bytes = 0;
  for (const { sequence, bytes: size, entry } of rows) {
    page.push({ sequence, text: typeof entry === "string" ? entry : undefined });
    bytes += entry === null ? 0 : size;
    if (bytes >= PAGE_BYTES) break;
  }
  return page;
}

function translate<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw toLogError(error);
  }
}
