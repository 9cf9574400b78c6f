import type { DatabaseSync } from "node:sqlite";

/**
 * Do `work`, whole or not at all, in a transaction of its own that holds the write lock from its beginning. Throws what `work` throws, and
 * what SQLite throws: also that another process has the lock, so that the same call may succeed a little later.
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
