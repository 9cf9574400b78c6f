import type { PoolClient } from "../../records/postgres/connections.ts";
import { type FormatRow, layTables } from "../../records/postgres/lay-tables.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";

/** Steps from one format of these tables to the next. A separate row holds their format. */
const STEPS: readonly string[] = [];

/** Create missing tables of the log, and convert those of an earlier format. Throws StoreTooNew, or the error of the store. */
export async function makeTables(store: Pick<PostgresStore, "schema" | "read" | "make" | "migrates">): Promise<void> {
  const { schema } = store;
  await layTables(store, {
    store: "The log",
    format: (client) => formatOf(client, schema),
    make: (client) => client.query(tablesSql(schema)),
    steps: STEPS,
    mark: (format) => `UPDATE "${schema}"."_log_format" SET format = ${format}`,
  });
}

/** Entries are stored under their stream's number, which is never reused: remaining entries of a removed stream are orphaned. */
function tablesSql(schema: string): string {
  return `
    CREATE TABLE "${schema}"."_log_format" (format integer NOT NULL);
    INSERT INTO "${schema}"."_log_format" VALUES (0);
    CREATE SEQUENCE "${schema}"."_log_number";
    CREATE TABLE "${schema}"."_log_streams" (stream text COLLATE "C" PRIMARY KEY, number bigint NOT NULL, newest bigint NOT NULL);
    CREATE TABLE "${schema}"."_log_entries"
      (number bigint NOT NULL, sequence bigint NOT NULL, entry text NOT NULL, PRIMARY KEY (number, sequence));
    CREATE TABLE "${schema}"."_log_removed" (number bigint PRIMARY KEY);
  `;
}

async function formatOf(client: PoolClient, schema: string): Promise<FormatRow | undefined> {
  // Queries the catalogue's rows: a connection that did not find a name once may report it missing for a while.
  const { rows } = await client.query(
    "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relname = '_log_format'",
    [schema],
  );
  if (rows.length === 0) return undefined;
  return (await client.query<FormatRow>(`SELECT * FROM "${schema}"."_log_format"`)).rows[0] ?? { format: Number.NaN };
}
