import type { ports } from "@portico/core";
import type { PostgresBackend } from "./backend.ts";
import type { PartChanges } from "./group-writer.ts";

/**
 * The store behind the records, for adapters of this package that keep their own tables in the same schema, so that one commit
 * covers both. Their table names begin with `_`, which no collection name does.
 */
export interface PostgresStore extends Pick<
  PostgresBackend,
  "schema" | "read" | "make" | "migrates" | "change" | "locked" | "addCondition" | "dedicated"
> {
  /**
   * Writes of records as parts of a commit, with one result per write. Throws TypeError for writes that cannot be stored.
   */
  recordChanges(writes: readonly ports.Write[]): readonly PartChanges[];
}

// In a separate map and not on the port's instances: a plugin that gets records must get only records.
const stores = new WeakMap<ports.Records, PostgresStore>();

/** Make the store behind `records` available to other adapters of this package. */
export function shareStore(records: ports.Records, store: PostgresStore): void {
  stores.set(records, store);
}

/** The store behind records of `records/postgres`. Undefined for other records. */
export function postgresStoreOf(records: ports.Records): PostgresStore | undefined {
  return stores.get(records);
}
