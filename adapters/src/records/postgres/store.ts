import type { ports } from "@portico/core";
import type { PostgresBackend } from "./backend.ts";
import type { PartChanges } from "./group-writer.ts";

/**
 * The store behind the records, for adapters of this room that keep tables of their own in the same schema, so that one commit holds both.
 * Their tables' names begin with `_`, which no collection's does.
 */
export interface PostgresStore extends Pick<PostgresBackend, "schema" | "read" | "make" | "change"> {
  /** Writes of records as a part of a commit. Throws TypeError for what cannot be stored. */
  recordChanges(writes: readonly ports.Write[]): PartChanges;
}

// Beside the port's instances and not on them: a plugin that is given records gets records.
const stores = new WeakMap<ports.Records, PostgresStore>();

/** Let others of this room find the store behind `records`. */
export function shareStore(records: ports.Records, store: PostgresStore): void {
  stores.set(records, store);
}

/** The store behind records that `records/postgres` made; undefined for any other. */
export function postgresStoreOf(records: ports.Records): PostgresStore | undefined {
  return stores.get(records);
}
