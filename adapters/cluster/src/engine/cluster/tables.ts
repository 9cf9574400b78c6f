import type { PoolClient } from "../../records/postgres/connections.ts";
import { type FormatRow, layTables } from "../../records/postgres/lay-tables.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";

/** Steps from one format of these tables to the next. A separate row holds their format. */
const STEPS: readonly string[] = [];

/** Create missing tables of the engine, and convert those of an earlier format. Throws StoreTooNew, or the error of the store. */
export async function makeTables(store: Pick<PostgresStore, "schema" | "read" | "make" | "migrates">): Promise<void> {
  const { schema } = store;
  await layTables(store, {
    store: "The engine's journal",
    format: (client) => formatOf(client, schema),
    make: (client) => client.query(tablesSql(schema)),
    steps: STEPS,
    mark: (format) => `UPDATE "${schema}"."_engine_format" SET format = ${format}`,
  });
}

/**
 * `_engine_work` has one small row per work. The input and the stored results of a work are in `_engine_notes`, and are deleted
 * when it ends. Each index covers only the rows that it is used for.
 *
 * `_engine_processes` has a row per living process. `_engine_server` identifies a run of the server: it is unlogged, so it is empty
 * after a crash of the server and on a standby that became the primary.
 */
function tablesSql(schema: string): string {
  const table = (name: string) => `"${schema}"."_engine_${name}"`;
  return `
    CREATE TABLE ${table("format")} (format integer NOT NULL);
    INSERT INTO ${table("format")} VALUES (0);
    CREATE SEQUENCE ${table("number")};
    CREATE TABLE ${table("work")} (
      work bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
      kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL,
      generation integer NOT NULL, fence integer NOT NULL, attempt integer NOT NULL,
      accepted double precision NOT NULL, ended double precision, output text, error text, reason text,
      due double precision, awaited text, owner bigint, lost boolean NOT NULL, queued timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 70);
    CREATE INDEX "_engine_open" ON ${table("work")} (kind, key, work) WHERE ended IS NULL;
    CREATE INDEX "_engine_owned" ON ${table("work")} (owner, work) WHERE owner IS NOT NULL;
    CREATE INDEX "_engine_lined" ON ${table("work")} (kind, queued, work) WHERE state = 'lined';
    CREATE INDEX "_engine_due" ON ${table("work")} (due) WHERE due IS NOT NULL;
    CREATE INDEX "_engine_ended" ON ${table("work")} (ended) WHERE ended IS NOT NULL;
    CREATE TABLE ${table("notes")} (
      work bigint NOT NULL, kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, number bigint NOT NULL,
      state text NOT NULL, value text,
      PRIMARY KEY (work, kind, name, number)
    );
    CREATE SEQUENCE ${table("lease")} MAXVALUE 2147483647;
    CREATE TABLE ${table("processes")} (
      lease bigint PRIMARY KEY, process text NOT NULL, server text NOT NULL, until timestamptz NOT NULL
    );
    CREATE UNLOGGED TABLE ${table("server")} (one integer PRIMARY KEY CHECK (one = 1), run text NOT NULL);
    CREATE TABLE ${table("chores")} (name text COLLATE "C" PRIMARY KEY, due double precision NOT NULL, owner bigint);
    CREATE TABLE ${table("sweep")} (one integer PRIMARY KEY CHECK (one = 1), last timestamptz NOT NULL);
    INSERT INTO ${table("sweep")} VALUES (1, '-infinity');
  `;
}

async function formatOf(client: PoolClient, schema: string): Promise<FormatRow | undefined> {
  // Queries the catalogue's rows: a connection that did not find a name once may report it missing for a while.
  const { rows } = await client.query(
    "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relname = '_engine_format'",
    [schema],
  );
  if (rows.length === 0) return undefined;
  return (await client.query<FormatRow>(`SELECT * FROM "${schema}"."_engine_format"`)).rows[0] ?? { format: Number.NaN };
}
