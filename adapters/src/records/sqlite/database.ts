import { chmodSync, closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import { BUSY_WAIT_MS, patiently } from "./busy.ts";
import { inOneCommit } from "./in-one-commit.ts";
import { toUnavailable } from "./unavailable.ts";

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
/** Of the tables' layout, kept in the file's `user_version`. */
const FORMAT = 1;

/**
 * Pages of the write-ahead log (4 KiB each) after which they are moved into the file: 32 MiB. A page that is written often is moved once for
 * all of it, and moving waits for the disk; SQLite's own 4 MiB would do that several times a second under load.
 */
const CHECKPOINT_PAGES = 8192;

/** Open a store's file, or make it. Throws RecordsUnavailable. */
export function openDatabase(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    makePrivate(path);
    const opened = new DatabaseSync(path);
    database = opened;
    // First of all, or two processes that open one new file at the same time fail on the next line.
    opened.exec(`PRAGMA busy_timeout = ${BUSY_WAIT_MS}`);
    patiently(() => prepareStore(opened));
    return opened;
  } catch (cause) {
    database?.close();
    throw toUnavailable("opened", cause);
  }
}

/** SQLite gives the files that it puts beside the database the database's own mode, so that this one file decides. */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, "wx", OWNER_ONLY));
  } catch (error) {
    // An existing file is not opened here: closing it would drop the locks of this process's other connections to it.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if (mode & OTHERS) chmodSync(file, OWNER_ONLY);
  }
}

function prepareStore(database: DatabaseSync): void {
  const format = database.prepare("PRAGMA user_version").get()?.user_version;
  if (format !== FORMAT && format !== 0) throw new ports.RecordsUnavailable("The records store was written by a newer version");
  if (database.prepare("PRAGMA journal_mode = WAL").get()?.journal_mode !== "wal") {
    throw new ports.RecordsUnavailable("The records store needs a file system with shared memory (SQLite's WAL mode)");
  }
  // FULL syncs at every commit; fullfsync matters on macOS alone, where a plain fsync stops at the disk's cache.
  database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  if (format === 0) makeStore(database);
}

function makeStore(database: DatabaseSync): void {
  inOneCommit(database, () => {
    // Another process may have made it since.
    if (database.prepare("PRAGMA user_version").get()?.user_version !== 0) return;
    if (database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get()) {
      throw new ports.RecordsUnavailable("The file is a database, but not a records store");
    }
    // The version counter of the whole store; its name cannot be a collection's.
    database.exec(
      `CREATE TABLE "_store" (version INTEGER NOT NULL); INSERT INTO "_store" VALUES (0); PRAGMA user_version = ${FORMAT}`,
    );
  });
}
