import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { defineAdapter, ports, type Scope } from "@portico/core";
import { createCheckedRecords, type RecordsBackend } from "./create-records.ts";
import { BUSY_ATTEMPTS, patiently } from "./sqlite/busy.ts";
import { openDatabase } from "./sqlite/database.ts";
import { createGroupWriter, type GroupWriter } from "./sqlite/group-writer.ts";
import { shareStore } from "./sqlite/store.ts";
import { openTable, type Table } from "./sqlite/table.ts";
import { toUnavailable } from "./sqlite/unavailable.ts";

export interface SqliteRecordsOptions {
  /** The database file, made with its folder where it is missing; only its owner can read it and the files beside it. */
  readonly path: string;
}

/**
 * Records in one SQLite file, which several processes may use at the same time. Writes of one event-loop turn share a commit.
 * Opening throws RecordsUnavailable when the file cannot be opened, is no records store, or was written by a newer version.
 */
export const sqliteRecords = defineAdapter({
  name: "records/sqlite",
  port: ports.records,
  needs: {},
  open(_given, options: SqliteRecordsOptions, scope) {
    const backend = openSqliteBackend(options.path, scope);
    const { records, check } = createCheckedRecords(backend);
    shareStore(records, { ...backend, transact: async (work, writes = []) => backend.transact(work, check(writes)) });
    return records;
  },
});

/** Records in SQLite, and what another adapter needs to keep tables of its own beside them. */
export interface SqliteBackend extends RecordsBackend {
  readonly database: DatabaseSync;
  /** Read with statements of one's own. Throws RecordsUnavailable. */
  read<T>(read: () => T): T;
  readonly transact: GroupWriter["transact"];
  readonly transaction: GroupWriter["transaction"];
  close(): void;
}

/** Open a store's file, until the scope closes. Throws RecordsUnavailable. */
export function openSqliteBackend(path: string, scope: Scope): SqliteBackend {
  const database = openDatabase(resolve(path));
  try {
    const backend = createSqliteBackend(database);
    scope.onClose(backend.close);
    return backend;
  } catch (cause) {
    database.close();
    throw toUnavailable("opened", cause);
  }
}

/** The backend over an open database; `attempts` is how often it waits for another process's lock. */
export function createSqliteBackend(database: DatabaseSync, attempts = BUSY_ATTEMPTS): SqliteBackend {
  const tables = new Map<string, Table>();
  const tableOf = (collection: string): Table => {
    const table = tables.get(collection);
    if (!table) throw new TypeError(`Collection ${collection} was not opened in this store`);
    return table;
  };
  const writer = createGroupWriter(database, (write, version) => tableOf(write.collection).apply(write, version), attempts);

  const reading = <T>(read: () => T): T => {
    if (!database.isOpen) throw new ports.RecordsUnavailable("The records store is closed");
    try {
      return patiently(read);
    } catch (cause) {
      throw toUnavailable("read", cause);
    }
  };

  return {
    database,
    read: reading,
    transact: writer.transact,
    transaction: writer.transaction,
    open: (shape) =>
      void tables.set(
        shape.name,
        reading(() => openTable(database, shape)),
      ),
    get: (collection, id) => reading(() => tableOf(collection).get(id)),
    page: (collection, plan) => reading(() => tableOf(collection).page(plan)),
    commit: writer.commit,
    close() {
      try {
        writer.finish();
        // Leaves the whole store in its one file for whoever copies it; another process may hinder this, and harmlessly so.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } finally {
        database.close();
      }
    },
  };
}
