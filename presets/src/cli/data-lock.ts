import { closeSync, mkdirSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { DataDirectory } from "../platform/data-directory.ts";
import { readEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** Make the data directory, for its owner alone. One that is there keeps its mode. Throws CommandFailed (73). */
export function makeDataDirectory({ path }: DataDirectory): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new CommandFailed(
      `The data directory ${path} cannot be made (${(cause as NodeJS.ErrnoException).code})`,
      EXIT.cannotCreate,
      cause,
    );
  }
}

/**
 * Take the data directory for this process alone; the answer gives it back. The lock is the kernel's, on an SQLite file that stays
 * empty, so that a killed process leaves none behind. Throws CommandFailed: 75 when another process has it, 73 when it cannot be made.
 */
export function lockDataDirectory(directory: DataDirectory): () => void {
  let database: DatabaseSync | undefined;
  try {
    closeSync(openSync(directory.lock, "a", 0o600));
    database = new DatabaseSync(directory.lock, { timeout: 0 });
    database.exec("BEGIN EXCLUSIVE");
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

/** Whether a running service holds the data directory. False where there is none. */
export function isDataDirectoryLocked(directory: DataDirectory): boolean {
  try {
    const database = new DatabaseSync(directory.lock, { timeout: 0, readOnly: true });
    try {
      database.exec("BEGIN; SELECT count(*) FROM sqlite_schema");
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
