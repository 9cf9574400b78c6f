import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { readTableFormats, type StoreFormats } from "./sqlite-formats.ts";

/** An SQLite file of `sqliteStore`, open for reading. Functions throw the errors of SQLite. */
export interface SqliteReading {
  /** For checks with statements of their own. Opened only for reading. */
  readonly database: DatabaseSync;
  /** The formats of its tables. */
  formats(): StoreFormats;
  /** The version of the last write. Undefined for a file without records. */
  version(): number | undefined;
  /** Whether it has a table of this name. Each collection has one. */
  hasTable(name: string): boolean;
  /** Whether a collection has a record. */
  has(collection: string, id: string): boolean;
  /** The records of a collection, in the order of their IDs, page by page. Empty for a collection without a table. */
  records(collection: string): Iterable<{ readonly id: string; readonly text: string }>;
  /** Write a copy of the state of this moment into a new file, also while others write. The copy has no write-ahead log. */
  copyTo(path: string): void;
  close(): void;
}

const BUSY_MS = 10_000;
const PAGE = 500;

/** Opens an existing file of `sqliteStore` beside its service, changes nothing, and converts nothing. Throws the errors of SQLite. */
export function openSqliteReading(path: string): SqliteReading {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    // The last process that closes a file locks it for a moment. Not the option `timeout`: Deno ignores it for a read-only database.
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    return createReading(database);
  } catch (error) {
    database.close();
    throw error;
  }
}

function createReading(database: DatabaseSync): SqliteReading {
  const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
  const hasTable = (name: string): boolean => table.get(name) !== undefined;
  return {
    database,
    formats: () => readTableFormats(database),
    version() {
      return hasTable("_store") ? Number(database.prepare(`SELECT version FROM "_store"`).get()?.["version"]) : undefined;
    },
    hasTable,
    has: (collection, id) =>
      hasTable(collection) && database.prepare(`SELECT 1 FROM ${quoted(collection)} WHERE id = ?`).get(id) !== undefined,
    *records(collection) {
      if (!hasTable(collection)) return;
      const page = database.prepare(`SELECT id, value AS text FROM ${quoted(collection)} WHERE id > ? ORDER BY id LIMIT ${PAGE}`);
      for (let after = ""; ;) {
        const rows = page.all(after) as unknown as readonly { readonly id: string; readonly text: string }[];
        yield* rows;
        if (rows.length < PAGE) return;
        after = rows.at(-1)!.id;
      }
    },
    copyTo(path) {
      // SQLite accepts an empty file, and keeps its mode.
      closeSync(openSync(path, "wx", 0o600));
      database.prepare("VACUUM INTO ?").run(path);
    },
    close: () => database.close(),
  };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
