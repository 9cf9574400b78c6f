import type { ports } from "@portico/core";
import { makeTables as makeEngineTables } from "../engine/cluster/tables.ts";
import { makeTables as makeLogTables } from "../log/postgres/tables.ts";
import { createRecords } from "@portico/adapters/records/create-records";
import { openPostgresStore, type PostgresRecordsOptions } from "../records/postgres.ts";

/** Options of `migratePostgresStore`. */
export interface MigratePostgresStoreOptions extends Omit<PostgresRecordsOptions, "migrate" | "poolSize"> {
  /** Collections whose tables and indexes are created, too. Others are created when a process opens them for the first time. */
  readonly collections?: readonly ports.CollectionSpec[];
}

/**
 * Create the schema of a store in PostgreSQL, or convert it to the format of this version: for records, log and engine. Several processes
 * may do so at the same time. Run it before processes that open the store with `migrate: false`. Throws RecordsUnavailable, also
 * for a schema of a newer version, and TypeError for invalid options.
 */
export async function migratePostgresStore({ collections = [], ...options }: MigratePostgresStoreOptions): Promise<void> {
  const backend = await openPostgresStore({ ...options, poolSize: 1, migrate: true });
  try {
    await makeLogTables(backend);
    await makeEngineTables(backend);
    const records = createRecords(backend);
    // Reading waits for the table and its indexes. One after another: an index over many records takes long.
    for (const collection of collections) await records.collection(collection).query({ limit: 1 });
  } finally {
    await backend.close();
  }
}
