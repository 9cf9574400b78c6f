import { resolve } from "node:path";
import { defineAdapter, findStoreTooNew, ports, type Scope } from "@portico/core";
import { type SqliteStore, sqliteStoreOf } from "../records/sqlite/store.ts";
import { openSqliteBackend } from "../records/sqlite.ts";
import { createPurgingLog } from "./purging-log.ts";
import { openSqliteLog } from "./sqlite/sqlite-log.ts";

/** Options of `sqliteLog`. */
export interface SqliteLogOptions {
  /**
   * A database file only for the log. Required if the records are not in `records/sqlite`. Without it, the log is in the records'
   * own file, and entries and their records are one commit. With it, the records are written first.
   */
  readonly path?: string;
}

/**
 * A log in an SQLite file (WAL, synced at every commit). Several processes may append to it at the same time. Opening throws
 * LogUnavailable when the file cannot be opened or was written by a newer version, and TypeError without both a `path` and a
 * records store to share.
 */
export const sqliteLog = defineAdapter({
  name: "log/sqlite",
  port: ports.log,
  needs: { records: ports.records },
  place: ({ path }: SqliteLogOptions) => (path === undefined ? undefined : resolve(path)),
  open({ records }, options: SqliteLogOptions, scope): ports.EventLog {
    return createPurgingLog(openSqliteLog(storeFor(records, options.path, scope)), scope);
  },
});

function storeFor(records: ports.Records, path: string | undefined, scope: Scope): SqliteStore {
  if (path !== undefined) return openStore(path, records, scope);
  const shared = sqliteStoreOf(records);
  if (shared) return shared;
  throw new TypeError("The log needs a path of its own, because the records are not in SQLite");
}

/** The log's own store: the records are written before the transaction begins. */
function openStore(path: string, records: ports.Records, scope: Scope): SqliteStore {
  try {
    const backend = openSqliteBackend(path, scope);
    return {
      ...backend,
      async transact(work, writes = []) {
        if (writes.length > 0) await records.batch(writes);
        return backend.transact(() => work(() => {}), []);
      },
    };
  } catch (cause) {
    throw new ports.LogUnavailable(findStoreTooNew(cause)?.message ?? "The log cannot be opened", { cause });
  }
}
