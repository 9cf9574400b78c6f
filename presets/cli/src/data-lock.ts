import { closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { DataDirectory } from "./data-directory.ts";
import { readEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** Create the data directory, accessible only by its owner. An existing directory keeps its mode. Throws CommandFailed (73). */
export function makeDataDirectory({ path }: DataDirectory): void {
  try {
    makeFolder(path);
  } catch (cause) {
    throw new CommandFailed(
      `The data directory ${path} cannot be created (${(cause as NodeJS.ErrnoException).code})`,
      EXIT.cannotCreate,
      cause,
    );
  }
}

/** Does not use `recursive`: Node.js loops forever if the parent exists but accepts no folders, such as `/proc`. */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (!statSync(parent, { throwIfNoEntry: false })) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/**
 * Lock the data directory for this process. The returned function releases it. The lock is a kernel lock on an SQLite file that stays
 * empty, so that the lock of a killed process disappears. Throws CommandFailed: 75 if another process has the lock, 73 if it cannot be created.
 */
export function lockDataDirectory(directory: DataDirectory): () => void {
  let database: DatabaseSync | undefined;
  try {
    closeSync(openSync(directory.lock, "a", 0o600));
    database = new DatabaseSync(directory.lock, { timeout: 0 });
    // Not `exec`: Deno gives no error code for it.
    database.prepare("BEGIN EXCLUSIVE").run();
  } catch (cause) {
    database?.close();
    if (!isBusy(cause))
      throw new CommandFailed(`The data directory ${directory.path} cannot be written`, EXIT.cannotCreate, cause);
    const holder = readEndpoints(directory)?.pid;
    const who = holder === undefined ? "another process" : `the running process ${holder}`;
    throw new CommandFailed(
      `The data directory ${directory.path} is in use by ${who}: stop it, or give this one another --data-dir`,
      EXIT.inUse,
    );
  }
  return () => database.close();
}

/** Whether a running service holds the lock of the data directory. False if the directory does not exist. */
export function isDataDirectoryLocked(directory: DataDirectory): boolean {
  try {
    const database = new DatabaseSync(directory.lock, { readOnly: true });
    try {
      // Not the option `timeout`: Deno ignores it for a database that is only read.
      database.exec("PRAGMA busy_timeout = 0");
      database.prepare("SELECT count(*) FROM sqlite_schema").get();
      return false;
    } finally {
      database.close();
    }
  } catch (error) {
    return isBusy(error);
  }
}

const SQLITE_BUSY = 5;

function isBusy(error: unknown): boolean {
  return typeof error === "object" && error !== null && "errcode" in error && error.errcode === SQLITE_BUSY;
}
