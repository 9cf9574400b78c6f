import type { DatabaseSync } from "node:sqlite";
import type { ports } from "@portico/core";

/**
 * The store behind the records, for adapters of this room that keep tables of their own in the same file, so that one commit holds both.
 * Their tables' names begin with `_`, which no collection's does.
 */
export interface SqliteStore {
  readonly database: DatabaseSync;
  /** Read with statements of one's own. Throws RecordsUnavailable. */
  read<T>(read: () => T): T;
  /**
   * Do `work`, with statements of its own, in the transaction that this turn's writers share: whole or not at all, whatever becomes of
   * theirs, in the order of the calls. The given records are written where `work` calls `write`, which throws RecordConflict. It may be run
   * a second time, when nothing of the first is left in the store. Rejects with that, RecordsUnavailable, or TypeError for what cannot be
   * stored.
   */
  transact<T>(work: (write: () => void) => T, writes?: readonly ports.Write[]): Promise<T>;
  /** Which transaction this is, while one goes on: what was read in it stays so until the next. */
  transaction(): number;
}

// Beside the port's instances and not on them: a plugin that is given records gets records.
const stores = new WeakMap<ports.Records, SqliteStore>();

/** Let others of this room find the store behind `records`. */
export function shareStore(records: ports.Records, store: SqliteStore): void {
  stores.set(records, store);
}

/** The store behind records that `records/sqlite` made; undefined for any other. */
export function sqliteStoreOf(records: ports.Records): SqliteStore | undefined {
  return stores.get(records);
}
