import type { DatabaseSync } from "node:sqlite";

/**
 * Run `work` in its own transaction, which holds the write lock from its beginning. Throws the error of `work`, and errors of
 * SQLite: also that another process has the lock, so that the same call can succeed a little later.
 */
export function inOneCommit(database: DatabaseSync, work: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
