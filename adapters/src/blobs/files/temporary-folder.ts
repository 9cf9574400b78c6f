import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A folder of this opening alone, for files that are not yet what they will be. */
export interface TemporaryFolder {
  /** A path in it that nobody uses. */
  newPath(): string;
  /** Take it away with all that is in it. */
  close(): void;
}

const LOCK = "lock";
const LOCK_WAIT_MS = 5000;

/**
 * Make a folder below `path`, and take away those whose owners are gone. Who lives is told by a lock in each folder that its owner holds,
 * not by a process number: those begin anew in every container, and in a restarted one the dead owner's is our own. Everything is
 * synchronous, so that a second opening in this process never waits for one that cannot go on.
 */
export function openTemporaryFolder(path: string): TemporaryFolder {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  // One opening at a time: between making a folder and locking it, it looks like a dead one's.
  const turn = takeLock(join(path, LOCK), LOCK_WAIT_MS);
  try {
    sweepFolders(path);
    return makeFolder(join(path, `${process.pid}-${randomBytes(8).toString("hex")}`));
  } finally {
    turn.close();
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

/** Whatever cannot be locked, for whatever reason, is left alone. */
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
    // Never opened like this when it is there: closing it would give up a lock on it that this process has.
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return lockFile(path, waitMs);
}

/** An empty SQLite file, for the sake of the kernel's lock behind it: Node has no other, and it ends with its process. */
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
