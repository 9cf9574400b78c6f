import { DatabaseSync } from "node:sqlite";

const BUSY_MS = 10_000;

/**
 * Let all writes of an SQLite file of `sqliteStore` wait, in all processes, until the returned function is called. Reads go on. A service's
 * writes fail after five seconds, so hold them shortly. Throws the errors of SQLite.
 */
export function holdSqliteWrites(path: string): () => void {
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    database.exec("BEGIN IMMEDIATE");
  } catch (error) {
    database.close();
    throw error;
  }
  return () => {
    try {
      database.exec("ROLLBACK");
    } finally {
      database.close();
    }
  };
}
