import { chmodSync, closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ports, stepsFrom } from "@portico/core";
import { BUSY_WAIT_MS, patiently } from "./busy.ts";
import { layTables, type TableLayout } from "./lay-tables.ts";
import { toUnavailable } from "./unavailable.ts";

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
/** Steps from one format of the tables to the next. The file's `user_version` holds its format. */
const STEPS: readonly string[] = [];
/** The newest format of the tables of records. */
export const RECORDS_FORMAT: number = STEPS.length + 1;

/**
 * Pages of the write-ahead log (4 KiB each) after which they are moved into the file: 32 MiB. A page that is written often is
 * moved only once, and moving waits for the disk. With SQLite's own 4 MiB, this would happen several times a second under load.
 */
const CHECKPOINT_PAGES = 8192;

/** Open a store's file, or create it. Throws RecordsUnavailable. */
export function openDatabase(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    makePrivate(path);
    const opened = new DatabaseSync(path);
    database = opened;
    // Must come first. Otherwise, if two processes open one new file at the same time, the next line fails.
    opened.exec(`PRAGMA busy_timeout = ${BUSY_WAIT_MS}`);
    patiently(() => prepareStore(opened));
    return opened;
  } catch (cause) {
    database?.close();
    throw toUnavailable("opened", cause);
  }
}

/** SQLite gives the files next to the database the mode of the database, so the mode of this file is enough. */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, "wx", OWNER_ONLY));
  } catch (error) {
    // An existing file is not opened here: closing it would release the locks of this process's other connections to it.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if (mode & OTHERS) chmodSync(file, OWNER_ONLY);
  }
}

function prepareStore(database: DatabaseSync): void {
  const layout = layoutOf(database);
  // Checked before any change: a file of a newer version is left unchanged.
  const found = layout.format();
  if (found !== undefined) stepsFrom(layout.store, found, STEPS);
  if (database.prepare("PRAGMA journal_mode = WAL").get()?.journal_mode !== "wal") {
    throw new ports.RecordsUnavailable("The records store needs a file system with shared memory (SQLite's WAL mode)");
  }
  // FULL syncs at every commit. fullfsync has an effect only on macOS, where a plain fsync stops at the disk's cache.
  database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  layTables(database, layout);
}

function layoutOf(database: DatabaseSync): TableLayout {
  return {
    store: "The records store",
    // A new file has 0.
    format: () => database.prepare("PRAGMA user_version").get()?.user_version || undefined,
    make() {
      if (database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get()) {
        throw new ports.RecordsUnavailable("The file is a database, but not a records store");
      }
      // The version counter of the whole store. Its name cannot be the name of a collection.
      database.exec(`CREATE TABLE "_store" (version INTEGER NOT NULL); INSERT INTO "_store" VALUES (0)`);
    },
    steps: STEPS,
    mark: (format) => `PRAGMA user_version = ${format}`,
  };
}
