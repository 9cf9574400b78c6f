import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { defineAdapter, ports, type Scope } from "@portico/core";
import { type CheckedWrite, createCheckedRecords, type RecordsBackend } from "./create-records.ts";
import { gatherReads } from "./gathered-reads.ts";
import { BUSY_ATTEMPTS, patiently } from "./sqlite/busy.ts";
import { readMark } from "./sqlite/durable-mark.ts";
import { noteLoss } from "./sqlite/note-loss.ts";
import { openDatabase } from "./sqlite/database.ts";
import { createGroupWriter, type GroupWriter } from "./sqlite/group-writer.ts";
import { shareStore, type SqliteStore } from "./sqlite/store.ts";
import { openTable, type Table } from "./sqlite/table.ts";
import { toUnavailable } from "./sqlite/unavailable.ts";

/** Options of `sqliteRecords`. */
export interface SqliteRecordsOptions {
  /** The database file. It is created with its folder if it is missing. Only its owner can read it and the files next to it. */
  readonly path: string;
}

/**
 * Records in one SQLite file. Several processes may use it at the same time. Writes of one event-loop turn share a commit.
 * Opening throws RecordsUnavailable when the file cannot be opened, is not a records store, or was written by a newer version.
 */
export const sqliteRecords = defineAdapter({
  name: "records/sqlite",
  port: ports.records,
  needs: {},
  place: ({ path }: SqliteRecordsOptions) => resolve(path),
  open(_given, options: SqliteRecordsOptions, scope) {
    const backend = openSqliteBackend(options.path, scope);
    const { records, check } = createCheckedRecords(backend);
    shareStore(records, { ...backend, transact: async (work, writes = []) => backend.transact(work, check(writes)) });
    return records;
  },
});

/** Records in SQLite, with the access that another adapter needs for its own tables in the same file. */
export interface SqliteBackend extends RecordsBackend {
  readonly database: DatabaseSync;
  /** Read with the caller's own statements. Throws RecordsUnavailable. */
  read<T>(read: () => T): T;
  readonly transact: GroupWriter["transact"];
  readonly addCondition: SqliteStore["addCondition"];
  readonly transaction: GroupWriter["transaction"];
  close(): void;
}

/** Open a store's file, until the scope closes. Throws RecordsUnavailable. */
export function openSqliteBackend(path: string, scope: Scope): SqliteBackend {
  // Read before the store: another process may write meanwhile.
  const marked = readMark(resolve(path));
  const database = openDatabase(resolve(path));
  try {
    noteLoss(database, marked);
    const backend = createSqliteBackend(database);
    scope.onClose(backend.close);
    return backend;
  } catch (cause) {
    database.close();
    throw toUnavailable("opened", cause);
  }
}

/** The backend over an open database. `attempts` limits the waits for another process's lock. */
export function createSqliteBackend(database: DatabaseSync, attempts = BUSY_ATTEMPTS): SqliteBackend {
  const tables = new Map<string, Table>();
  const tableOf = (collection: string): Table => {
    const table = tables.get(collection);
    if (!table) throw new TypeError(`Collection ${collection} was not opened in this store`);
    return table;
  };
  const conditions = new Map<string, Parameters<SqliteStore["addCondition"]>[1]>();
  const apply = (write: CheckedWrite, version: number): number => {
    const holds = conditions.get(write.collection);
    if (!holds) return tableOf(write.collection).apply(write, version);
    const held = holds(write.id, write.expected);
    if (!held) throw new ports.RecordConflict(write.collection, write.id);
    return held === "changed" ? version : 0;
  };
  const writer = createGroupWriter(database, apply, attempts);

  const reading = <T>(read: () => T): T => {
    if (!database.isOpen) throw new ports.RecordsUnavailable("The records store is closed");
    try {
      return patiently(read);
    } catch (cause) {
      throw toUnavailable("read", cause);
    }
  };

  const readOne = gatherReads(async (collection, ids) =>
    reading(() => {
      const table = tableOf(collection);
      if (ids.length > 1) return table.getAll(ids);
      const found = table.get(ids[0]!);
      return found ? [found] : [];
    }),
  );

  return {
    database,
    read: reading,
    transact: writer.transact,
    transaction: writer.transaction,
    addCondition: (collection, holds) => void conditions.set(collection, holds),
    isCondition: (collection) => conditions.has(collection),
    open: (shape) =>
      void tables.set(
        shape.name,
        reading(() => openTable(database, shape)),
      ),
    get: readOne,
    page: (collection, plan) => reading(() => tableOf(collection).page(plan)),
    places: (collection, plan) => reading(() => tableOf(collection).places(plan)),
    commit: writer.commit,
    close() {
      try {
        writer.finish();
        moveLog(database);
      } finally {
        database.close();
      }
    },
  };
}

/** Move all data into the one file, so that it can be copied. */
function moveLog(database: DatabaseSync): void {
  try {
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // Another process or a full disk may prevent this. That is harmless: no data is lost, and the log stays next to the file.
  }
}
