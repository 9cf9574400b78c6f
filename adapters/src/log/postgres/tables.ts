import { ports } from "@portico/core";
import type { PoolClient } from "../../records/postgres/connections.ts";
import type { LogStore } from "./postgres-log.ts";

/** Of these tables' layout. */
const FORMAT = 1;

/** Make the log's tables where they are missing. Throws LogUnavailable for those of a newer version, or what the store throws. */
export async function makeTables(store: LogStore): Promise<void> {
  const { schema } = store;
  if (await store.read((client) => isMade(client, schema))) return;
  await store.make(async (client) => {
    // Another process may have made them since.
    if (!(await isMade(client, schema))) await client.query(tablesSql(schema));
  });
}

/**
 * Entries stand under their stream's number, which is never used again: entries of a removed stream that are still there are nobody's.
 */
function tablesSql(schema: string): string {
  return `
    CREATE TABLE "${schema}"."_log_format" (format integer NOT NULL);
    INSERT INTO "${schema}"."_log_format" VALUES (${FORMAT});
    CREATE SEQUENCE "${schema}"."_log_number";
    CREATE TABLE "${schema}"."_log_streams" (stream text COLLATE "C" PRIMARY KEY, number bigint NOT NULL, newest bigint NOT NULL);
    CREATE TABLE "${schema}"."_log_entries"
      (number bigint NOT NULL, sequence bigint NOT NULL, entry text NOT NULL, PRIMARY KEY (number, sequence));
    CREATE TABLE "${schema}"."_log_removed" (number bigint PRIMARY KEY);
  `;
}

async function isMade(client: PoolClient, schema: string): Promise<boolean> {
  // Asks the catalogue's rows: a name that a connection did not find once may seem to be missing to it for a while.
  const { rows } = await client.query(
    "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relname = '_log_format'",
    [schema],
  );
  if (rows.length === 0) return false;
  const found = await client.query<{ format: number }>(`SELECT format FROM "${schema}"."_log_format"`);
  if (found.rows[0]?.format === FORMAT) return true;
  throw new ports.LogUnavailable("The log's tables were written by a newer version");
}
