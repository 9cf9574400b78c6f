import { ports, StoreForeign } from "@portico/core";
import type { CollectionShape } from "@portico/adapters/records/collection-shape";
import type { Connections, PoolClient } from "./connections.ts";
import { fieldFunctionsSql, HEAD_BYTES, keySql } from "./field-key.ts";
import { type FormatRow, layTables, type TableAccess } from "./lay-tables.ts";
import type { Locks } from "./locks.ts";
import { columnName, fittingName, indexName, tableName } from "./names.ts";

/** Steps from one format of the tables to the next. A row in the store's own table holds their format. */
const STEPS: readonly string[] = [];
/** Creating an index over many records takes long. */
const MAKING_MS = 60 * 60 * 1000;

/**
 * Create the missing schema of a store, and bring its tables to the newest format, if `migrates` allows it. Throws
 * RecordsUnavailable.
 */
export async function makeStore(connections: Connections, locks: Locks, schema: string, migrates: boolean): Promise<void> {
  const access: TableAccess = {
    read: (work) => connections.use("opened", work),
    make: (work) => making(connections, locks, work),
    migrates,
  };
  await layTables(access, {
    store: "The records store",
    format: (client) => formatOf(client, schema),
    async make(client) {
      const { rows } = await client.query(`SELECT 1 FROM pg_namespace WHERE nspname = $1`, [schema]);
      if (rows.length === 0) await client.query(`CREATE SCHEMA "${schema}"`);
      await client.query(`
        CREATE SEQUENCE "${schema}"."_version";
        ${fieldFunctionsSql(schema)}
        CREATE TABLE "${schema}"."_store" (format integer NOT NULL);
        INSERT INTO "${schema}"."_store" VALUES (0);
      `);
    },
    steps: STEPS,
    mark: (format) => `UPDATE "${schema}"."_store" SET format = ${format}`,
  });
}

/** Create the missing table of a collection, its columns and its indexes. Throws RecordsUnavailable. */
export async function makeTable(connections: Connections, locks: Locks, schema: string, shape: CollectionShape): Promise<void> {
  const missing = (client: PoolClient) => missingSql(client, schema, shape);
  if ((await connections.use("opened", missing)).length === 0) return;
  await making(connections, locks, async (client) => {
    for (const sql of await missing(client)) await client.query({ text: sql, ...{ query_timeout: MAKING_MS } });
  });
}

/** Run `work` under the lock for changes of tables, in one transaction. */
export async function making(connections: Connections, locks: Locks, work: (client: PoolClient) => Promise<void>): Promise<void> {
  await connections.use("opened", async (client) => {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0");
    await client.query({ text: locks.tables, ...{ query_timeout: MAKING_MS } });
    await work(client);
    await client.query("COMMIT");
  });
}

async function formatOf(client: PoolClient, schema: string): Promise<FormatRow | undefined> {
  // Queries the catalogue's rows: a connection that did not find a name once may report it missing for a while.
  const { rows } = await client.query<{ encoding: string; store: boolean; tables: number }>(
    `SELECT current_setting('server_encoding') AS encoding, coalesce(bool_or(relname = '_store'), false) AS store, count(*)::int AS tables
     FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1`,
    [schema],
  );
  const { encoding, store, tables } = rows[0]!;
  // Other encodings cannot hold every text, and do not sort texts in the port's order.
  if (encoding !== "UTF8") throw new ports.RecordsUnavailable("The records store needs a database with the encoding UTF8");
  if (!store && tables > 0) throw new StoreForeign("The schema holds tables, but is not a records store");
  if (!store) return undefined;
  return (await client.query<FormatRow>(`SELECT * FROM "${schema}"."_store"`)).rows[0] ?? { format: Number.NaN };
}

/** Existing parts are not changed: even a statement without effect would wait for all readers of the table. */
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
    // In one statement, because each such statement rewrites the whole table.
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
