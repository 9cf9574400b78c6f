import { ports } from "@portico/core";
import type { CollectionShape } from "../collection-shape.ts";
import type { Connections, PoolClient } from "./connections.ts";
import { fieldFunctionsSql, HEAD_BYTES, keySql } from "./field-key.ts";
import type { Locks } from "./locks.ts";
import { columnName, fittingName, indexName, tableName } from "./names.ts";

/** Of the tables' layout; kept in a row of the store's own table. */
const FORMAT = 1;
/** An index over many records takes its time. */
const MAKING_MS = 60 * 60 * 1000;

/** Make the schema of a store where it is missing. Throws RecordsUnavailable. */
export async function makeStore(connections: Connections, locks: Locks, schema: string): Promise<void> {
  if (await connections.use("opened", (client) => isMade(client, schema))) return;
  await making(connections, locks, async (client) => {
    // Another process may have made it since.
    if (await isMade(client, schema)) return;
    const { rows } = await client.query(`SELECT 1 FROM pg_namespace WHERE nspname = $1`, [schema]);
    if (rows.length === 0) await client.query(`CREATE SCHEMA "${schema}"`);
    await client.query(`
      CREATE SEQUENCE "${schema}"."_version";
      ${fieldFunctionsSql(schema)}
      CREATE TABLE "${schema}"."_store" (format integer NOT NULL);
      INSERT INTO "${schema}"."_store" VALUES (${FORMAT});
    `);
  });
}

/** Make the table of a collection, its columns and its indexes where they are missing. Throws RecordsUnavailable. */
export async function makeTable(connections: Connections, locks: Locks, schema: string, shape: CollectionShape): Promise<void> {
  const missing = (client: PoolClient) => missingSql(client, schema, shape);
  if ((await connections.use("opened", missing)).length === 0) return;
  await making(connections, locks, async (client) => {
    for (const sql of await missing(client)) await client.query({ text: sql, ...{ query_timeout: MAKING_MS } });
  });
}

/** Run `work` as the only one that changes tables of this store, whole or not at all. */
export async function making(connections: Connections, locks: Locks, work: (client: PoolClient) => Promise<void>): Promise<void> {
  await connections.use("opened", async (client) => {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0");
    await client.query({ text: locks.tables, ...{ query_timeout: MAKING_MS } });
    await work(client);
    await client.query("COMMIT");
  });
}

async function isMade(client: PoolClient, schema: string): Promise<boolean> {
  // Asks the catalogue's rows: a name that a connection did not find once may seem to be missing to it for a while.
  const { rows } = await client.query<{ encoding: string; store: boolean; tables: number }>(
    `SELECT current_setting('server_encoding') AS encoding, coalesce(bool_or(relname = '_store'), false) AS store, count(*)::int AS tables
     FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1`,
    [schema],
  );
  const { encoding, store, tables } = rows[0]!;
  // Others can neither hold every text nor order texts as the port's law does.
  if (encoding !== "UTF8") throw new ports.RecordsUnavailable("The records store needs a database with the encoding UTF8");
  if (!store && tables > 0) throw new ports.RecordsUnavailable("The schema holds tables, but is not a records store");
  if (!store) return false;
  const found = await client.query<{ format: number }>(`SELECT format FROM "${schema}"."_store"`);
  if (found.rows[0]?.format === FORMAT) return true;
  throw new ports.RecordsUnavailable("The records store was written by a newer version");
}

/** Nothing is changed that is there: also a statement that finds nothing to do would wait for everyone who reads the table. */
async function missingSql(client: PoolClient, schema: string, { name, fields, indexes }: CollectionShape): Promise<string[]> {
  const table = tableName(schema, name);
  const { rows } = await client.query<{ column: string; indexes: string[] }>(
    `SELECT attname AS column,
     ARRAY(SELECT relname::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = attrelid) AS indexes
     FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE nspname = $1 AND relname = $2 AND attnum > 0 AND NOT attisdropped`,
    [schema, fittingName(name)],
  );
  const columns = new Set(rows.map(({ column }) => column));
  const present = new Set(rows[0]?.indexes);
  const added = fields.map((field) => [columnName(field), field] as const).filter(([column]) => !columns.has(column));
  const made = indexes.map((each) => [indexName(name, each), each] as const).filter(([index]) => !present.has(index));
  return [
    ...(rows.length > 0
      ? []
      : [`CREATE TABLE ${table} (id text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, value text NOT NULL)`]),
    // All at once, for each such statement writes the whole table anew.
    ...(added.length > 0 ? [`ALTER TABLE ${table} ${added.map(([column, field]) => addSql(schema, column, field)).join()}`] : []),
    ...made.map(([index, each]) => `CREATE INDEX "${index}" ON ${table} (${[...each.map(quoted), "id"].join()})`),
  ];
}

function addSql(schema: string, column: string, field: string): string {
  return `ADD COLUMN "${column}" bytea GENERATED ALWAYS AS (substring(${keySql(schema, field)}, 1, ${HEAD_BYTES})) STORED`;
}

function quoted(field: string): string {
  return `"${columnName(field)}"`;
}
