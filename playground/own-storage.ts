// A custom storage adapter: records in a table of the application's SQLite database, next to the application's own tables.
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "@portico/adapters/clock/system";
import { createRecords, type QueryPlan, type RecordsBackend, type Row } from "@portico/adapters/records/create-records";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { type App, createApp, defineAdapter, ports, Secret } from "@portico/core";
import { notebook } from "./notebook.ts";

export interface AppRecordsOptions {
  /** The application's database. The application opens it, and closes it after the app. */
  readonly database: DatabaseSync;
}

/** Records in the table `portico_records`. `createRecords` checks ids, values, queries and cursors before it calls this code. */
export const appRecords = defineAdapter({
  name: "records/app-database",
  port: ports.records,
  needs: {},
  open(_given, { database }: AppRecordsOptions, scope) {
    let isClosed = false;
    scope.onClose(() => (isClosed = true));
    return createRecords(
      createBackend(database, (work) => {
        if (isClosed) throw new ports.RecordsUnavailable("The records are closed");
        try {
          return work();
        } catch (cause) {
          if (cause instanceof ports.RecordConflict) throw cause;
          // SQLite's messages may contain stored values, so they are not passed on.
          throw new ports.RecordsUnavailable("The application's database does not answer", { cause });
        }
      }),
    );
  },
});

function createBackend(database: DatabaseSync, safely: <T>(work: () => T) => T): RecordsBackend {
  database.exec(`
    CREATE TABLE IF NOT EXISTS portico_records
      (collection TEXT, id TEXT, version INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (collection, id)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS portico_versions (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL);
    INSERT OR IGNORE INTO portico_versions VALUES (1, 0)`);
  const row = database.prepare("SELECT id, version, value AS text FROM portico_records WHERE collection = ? AND id = ?");
  const next = database.prepare("UPDATE portico_versions SET last = last + 1 RETURNING last");
  const put = database.prepare("INSERT OR REPLACE INTO portico_records VALUES (?, ?, ?, ?)");
  const remove = database.prepare("DELETE FROM portico_records WHERE collection = ? AND id = ?");
  const find = (collection: string, id: string) => row.get(collection, id) as unknown as Row | undefined;

  return {
    open: ({ name, indexes }) =>
      safely(() => {
        for (const fields of indexes) {
          database.exec(`CREATE INDEX IF NOT EXISTS "portico_${name}(${fields.join()})"
            ON portico_records (${fields.map(fieldSql).join()}, id) WHERE collection = '${name}'`);
        }
      }),
    get: (collection, id) => safely(() => find(collection, id)),
    page: (collection, plan) =>
      safely(() => {
        const { sql, values } = pageSql(collection, plan);
        return database.prepare(sql).all(...values) as unknown as Row[];
      }),
    commit: async (writes) =>
      safely(() => {
        database.exec("BEGIN IMMEDIATE");
        try {
          const versions = writes.map(({ collection, id, text, expected }) => {
            const found = find(collection, id);
            if (expected !== undefined && expected !== (found?.version ?? "absent"))
              throw new ports.RecordConflict(collection, id);
            if (text === undefined && !found) return 0;
            const version = next.get()!["last"] as number;
            if (text === undefined) remove.run(collection, id);
            else put.run(collection, id, version, text);
            return version;
          });
          database.exec("COMMIT");
          return versions;
        } finally {
          if (database.isTransaction) database.exec("ROLLBACK");
        }
      }),
  };
}

const fieldSql = (field: string): string => `json_extract(value, '$.${field}')`;

/** SQLite sorts in the order of the port: NULL, then numbers, then texts by their bytes. Values are passed as JSON, like stored records. */
function pageSql(collection: string, { where, by, after, descending, limit }: QueryPlan) {
  const filters = [`collection = '${collection}'`];
  const values: string[] = [];
  for (const [field, value] of where) {
    filters.push(`${fieldSql(field)} = json_extract(?, '$') AND json_type(value, '$.${field}') = json_type(?)`);
    values.push(JSON.stringify(value), JSON.stringify(value));
  }
  const key = by === undefined ? "NULL" : fieldSql(by);
  const [beyond, direction] = descending ? ["<", "DESC"] : [">", "ASC"];
  if (after) {
    const isNull = after.value === null;
    // The records after the cursor: those with the same field value and a later id, and those with a later field value.
    filters.push(
      isNull
        ? `(${key} IS NULL AND id ${beyond} ?${descending ? "" : ` OR ${key} IS NOT NULL`})`
        : `((${key}, id) ${beyond} (json_extract(?, '$'), ?)${descending ? ` OR ${key} IS NULL` : ""})`,
    );
    values.push(...(isNull ? [] : [JSON.stringify(after.value)]), after.id);
  }
  const sql = `SELECT id, version, value AS text FROM portico_records WHERE ${filters.join(" AND ")}
    ORDER BY ${key} ${direction}, id ${direction} LIMIT ${limit + 1}`;
  return { sql, values };
}

/** The notebook, with its notes in the application's database. */
export function start(database: DatabaseSync): Promise<App> {
  return createApp({
    name: "notes",
    adapters: [systemClock(), memorySecrets(), appRecords({ database })],
    plugins: [notebook({ token: new Secret("a-token-for-this-story") })],
  });
}

if (import.meta.main) {
  using database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ada'), ('Bob')");
  await using app = await start(database);
  await app.fetch(
    new Request("http://notes.local/notes", {
      method: "POST",
      headers: { authorization: "Bearer a-token-for-this-story", "content-type": "application/json" },
      body: JSON.stringify({ title: "Ada", text: "Tea without milk." }),
    }),
  );
  const notes = database.prepare(`SELECT name, value ->> 'text' AS note FROM customers
    LEFT JOIN portico_records ON collection = 'notes' AND id = name`);
  for (const { name, note } of notes.all()) console.log(`${name}: ${note ?? "no note"}`);
}
