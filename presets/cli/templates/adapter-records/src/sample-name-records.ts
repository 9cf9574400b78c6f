import { DatabaseSync } from "node:sqlite";
import { createRecords, type RecordsBackend, type Row } from "@portico/adapters/records/create-records";
import { defineAdapter, ports } from "@portico/core";
import { pageStatement, fieldSql } from "./page-statement.ts";

export interface SampleNameRecordsOptions {
  /** The database file. */
  readonly path: string;
}

/**
 * Records in a SQL database. It is SQLite here: replace it with your store. `createRecords` checks ids, values, queries and cursors before it calls this,
 * so that all stores obey the same rules.
 */
export const sampleNameRecords = defineAdapter({
  name: "records/sample-name",
  port: ports.records,
  needs: {},
  open(_given, { path }: SampleNameRecordsOptions, scope) {
    const database = new DatabaseSync(path, { timeout: 5_000 });
    // After everything that is opened, the next line registers how it is closed.
    scope.onClose(() => database.close());
    return createRecords(createBackend(database));
  },
});

function createBackend(database: DatabaseSync): RecordsBackend {
  database.exec(`
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS records
      (collection TEXT, id TEXT, version INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (collection, id)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS versions (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL);
    INSERT OR IGNORE INTO versions VALUES (1, 0)`);
  const row = database.prepare("SELECT id, version, value AS text FROM records WHERE collection = ? AND id = ?");
  // One counter for the whole store: a record that is removed and created again gets a new version.
  const nextVersion = database.prepare("UPDATE versions SET last = last + 1 RETURNING last");
  const put = database.prepare("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)");
  const remove = database.prepare("DELETE FROM records WHERE collection = ? AND id = ?");
  const find = (collection: string, id: string) => row.get(collection, id) as unknown as Row | undefined;

  /** Callers know only the errors of the port. A database error may quote a value, so it becomes the cause, not the message. */
  const safely = <T>(work: () => T): T => {
    if (!database.isOpen) throw new ports.RecordsUnavailable("The records are closed");
    try {
      return work();
    } catch (cause) {
      if (cause instanceof ports.RecordConflict) throw cause;
      throw new ports.RecordsUnavailable("The database does not answer", { cause });
    }
  };

  return {
    open: ({ name, indexes }) =>
      safely(() => {
        for (const fields of indexes) {
          database.exec(`CREATE INDEX IF NOT EXISTS "${name}(${fields.join()})"
            ON records (${fields.map(fieldSql).join()}, id) WHERE collection = '${name}'`);
        }
      }),
    get: (collection, id) => safely(() => find(collection, id)),
    page: (collection, plan) =>
      safely(() => {
        const { sql, values } = pageStatement(collection, plan);
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
            const version = nextVersion.get()!["last"] as number;
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
