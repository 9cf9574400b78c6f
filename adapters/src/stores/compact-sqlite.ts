import { setTimeout as pause } from "node:timers/promises";
import { ports } from "@portico/core";
import { openSqliteLog } from "../log/sqlite/sqlite-log.ts";
import { BUSY_ATTEMPTS, patiently } from "../records/sqlite/busy.ts";
import { openDatabase } from "../records/sqlite/database.ts";
import { toUnavailable } from "../records/sqlite/unavailable.ts";
import { createSqliteBackend } from "../records/sqlite.ts";
import { sqliteStorePaths } from "./sqlite.ts";

const PAUSE_MS = 100;

/**
 * Rewrite the SQLite file of a `sqliteStore`, so that it has no traces of removed data, and empty its write-ahead log. Works beside a running
 * service: its writes wait meanwhile, and it can go on reading. Needs free disk space of about the file's size. Returns false if a reader of
 * another process prevented the write-ahead log from being emptied; the traces then disappear when the log is overwritten. Throws
 * RecordsUnavailable.
 */
export async function compactSqliteStore(dir: string, signal: AbortSignal): Promise<boolean> {
  const database = openDatabase(sqliteStorePaths(dir).records);
  const backend = createSqliteBackend(database);
  try {
    // Removed streams are deleted in the background, and this may not be done yet.
    await openSqliteLog({ ...backend, transact: (work) => backend.transact(work, []) }).purge(signal);
    patiently(() => database.exec("VACUUM"));
    for (let attempt = 1; attempt <= BUSY_ATTEMPTS; attempt++) {
      signal.throwIfAborted();
      if (database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0) return true;
      await pause(PAUSE_MS, undefined, { signal });
    }
    return false;
  } catch (cause) {
    throw cause instanceof ports.RecordsUnavailable ? cause : toUnavailable("written", cause);
  } finally {
    backend.close();
  }
}
