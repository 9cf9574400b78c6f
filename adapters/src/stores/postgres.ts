import { makeTables as makeEngineTables } from "../engine/cluster/tables.ts";
import { makeTables as makeLogTables } from "../log/postgres/tables.ts";
import { openPostgresStore, type PostgresRecordsOptions } from "../records/postgres.ts";

/**
 * Create the schema of a store in PostgreSQL, or convert it to the format of this version: for records, log and engine. Several processes
 * may do so at the same time. Run it before processes that open the store with `migrate: false`. Throws RecordsUnavailable, also
 * for a schema of a newer version, and TypeError for invalid options.
 */
export async function migratePostgresStore(options: Omit<PostgresRecordsOptions, "migrate" | "poolSize">): Promise<void> {
  const backend = await openPostgresStore({ ...options, poolSize: 1, migrate: true });
  try {
    await makeLogTables(backend);
    await makeEngineTables(backend);
  } finally {
    await backend.close();
  }
}
