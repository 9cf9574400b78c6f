import type { DatabaseSync } from "node:sqlite";
import type { ports } from "@portico/core";

/**
 * The store behind the records, for adapters of this package that keep their own tables in the same file, so that one commit
 * covers both. Their table names begin with `_`, which no collection name does.
 */
export interface SqliteStore {
  readonly database: DatabaseSync;
  /** Read with the caller's own statements. Throws RecordsUnavailable. */
  read<T>(read: () => T): T;
  /**
   * Run `work`, with its own statements, in the shared transaction of this turn. It succeeds or fails as a whole, independently
   * of other writers, in the order of the calls. The given records are written where `work` calls `write`, which throws
   * RecordConflict. It may run a second time, after the first run was rolled back. Rejects with that error, RecordsUnavailable,
   * or TypeError for a write that cannot be stored.
   */
  transact<T>(work: (write: () => void) => T, writes?: readonly ports.Write[]): Promise<T>;
  /**
   * Let batches of records contain conditions on the caller's own rows: writes of `collection`, which begins with `_`, write
   * nothing, and throw RecordConflict where `holds` is false for their ID and `expected`. It runs inside the transaction, and may change the
   * caller's own rows there.
   */
  addCondition(collection: string, holds: Condition): void;
  /** Number of the running transaction: a value that was read in it stays valid until the next. */
  transaction(): number;
}

/** Whether a condition holds. `changed`: it does, and rows were changed with it. It may run again after its transaction was rolled back. */
export type Condition = (id: string, expected: ports.Expected | undefined) => boolean | "changed";

// In a separate map and not on the port's instances: a plugin that gets records must get only records.
const stores = new WeakMap<ports.Records, SqliteStore>();

/** Make the store behind `records` available to other adapters of this package. */
export function shareStore(records: ports.Records, store: SqliteStore): void {
  stores.set(records, store);
}

/** The store behind records of `records/sqlite`. Undefined for other records. */
export function sqliteStoreOf(records: ports.Records): SqliteStore | undefined {
  return stores.get(records);
}
