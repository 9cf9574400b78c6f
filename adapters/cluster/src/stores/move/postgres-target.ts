import type { PostgresStore } from "../../records/postgres/store.ts";

/** Filled when an instance's adapters open, also if it has never been used. */
const OPENED = ["instance-secrets", "instance-moves"];

/** Tables of a store that contain data of an instance. Empty for a store that was only opened. */
export async function tablesWithData(store: PostgresStore): Promise<readonly string[]> {
  const withData: string[] = [];
  for (const table of await tablesOf(store)) {
    const { rows } = await store.read((client) => client.query(`SELECT 1 FROM "${store.schema}"."${table}" LIMIT 1`));
    if (rows.length > 0) withData.push(table);
  }
  return withData;
}

/** Removes what an earlier move, which stopped, has copied. */
export async function removeData(store: PostgresStore): Promise<void> {
  const tables = await tablesOf(store);
  if (tables.length === 0) return;
  const list = tables.map((table) => `"${store.schema}"."${table}"`).join();
  await store.make(async (client) => void (await client.query(`TRUNCATE ${list}`)));
}

/** Processes whose lease on work has not expired. One that was killed counts until then. */
export async function countProcesses({ schema, read }: PostgresStore): Promise<number> {
  const { rows } = await read((client) =>
    client.query<{ count: number }>(`SELECT count(*)::int AS count FROM "${schema}"."_engine_processes" WHERE until > now()`),
  );
  return rows[0]!.count;
}

/** New versions are larger than all that the moved records had, so that no caller can replace a record with an old version. */
export async function raiseVersions(store: PostgresStore, newest: number): Promise<void> {
  const sequence = `"${store.schema}"."_version"`;
  await store.read((client) =>
    client.query(`SELECT setval('${sequence}', greatest($1, (SELECT last_value FROM ${sequence})))`, [Math.max(1, newest)]),
  );
}

/** Collections, and the tables of the log and of the engine. */
async function tablesOf({ schema, read }: PostgresStore): Promise<readonly string[]> {
  const { rows } = await read((client) =>
    client.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE nspname = $1 AND relkind = 'r' AND relname <> ALL ($2) AND (relname !~ '^_' OR relname IN
         ('_log_streams', '_log_entries', '_log_removed', '_engine_work', '_engine_notes')) ORDER BY relname`,
      [schema, OPENED],
    ),
  );
  return rows.map(({ name }) => name);
}
