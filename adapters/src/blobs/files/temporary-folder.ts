import { randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A folder of this opening, for unfinished files. */
export interface TemporaryFolder {
  /** An unused path in it. */
  newPath(): string;
  /** Remove it with its content. */
  close(): void;
}

const LOCK = "lock";
const LOCK_WAIT_MS = 5000;

/**
 * Create a folder below `path`, and remove those whose owners have ended. Each owner holds a lock in its folder, which shows that
 * it is alive. A process ID would not: IDs start again in every container, and after a restart the dead owner may have had our
 * own. Everything is synchronous, so that a second opening in this process never waits for one that cannot continue.
 */
export function openTemporaryFolder(path: string): TemporaryFolder {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  // One opening at a time: between its creation and its lock, a folder looks abandoned.
  const turn = takeLock(join(path, LOCK), LOCK_WAIT_MS);
  try {
    sweepFolders(path);
    return makeFolder(join(path, `${process.pid}-${randomBytes(8).toString("hex")}`));
  } finally {
    turn.close();
  }
}

/** The folders below `path` whose owners have ended. Changes nothing. Empty for a missing folder. */
export function listAbandoned(path: string): readonly string[] {
  const entries = existsSync(path) ? readdirSync(path, { withFileTypes: true }) : [];
  return entries.filter((entry) => entry.isDirectory() && !isLocked(join(path, entry.name))).map(({ name }) => join(path, name));
}

/** Reads the lock instead of taking it: a sweep at the same time must not find it taken. */
function isLocked(folder: string): boolean {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(join(folder, LOCK), { readOnly: true });
    lock.exec("PRAGMA busy_timeout = 0");
    lock.prepare("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch {
    return true;
  } finally {
    lock?.close();
  }
}

function makeFolder(own: string): TemporaryFolder {
  mkdirSync(own, { mode: 0o700 });
  const lock = takeLock(join(own, LOCK), 0);
  let files = 0;
  return {
    newPath: () => join(own, `${++files}`),
    close() {
      lock.close();
      rmSync(own, { recursive: true, force: true });
    },
  };
}

function sweepFolders(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const folder = join(path, entry.name);
    if (entry.isDirectory() && !isOwned(folder)) rmSync(folder, { recursive: true, force: true });
  }
}

/** A folder that cannot be locked, for any reason, is left alone. */
function isOwned(folder: string): boolean {
  try {
    lockFile(join(folder, LOCK), 0).close();
    return false;
  } catch {
    return true;
  }
}

function takeLock(path: string, waitMs: number): DatabaseSync {
  try {
    // Only created, never opened if it exists: closing it would release this process's own lock on it.
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return lockFile(path, waitMs);
}

/**
 * An empty SQLite file, used for the kernel's file lock behind it. Node has no other file lock, and this one ends with its
 * process.
 */
function lockFile(path: string, waitMs: number): DatabaseSync {
  const lock = new DatabaseSync(path, { timeout: waitMs });
  try {
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}
