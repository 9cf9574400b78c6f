import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";

const LOCK_WAIT_MS = 5000;

/**
 * Run `work` while no other process, and no other code in this one, holds the lock of that name. `work` must be synchronous.
 * Throws SecretsUnavailable if the lock is not acquired within 5 s, and the errors of `work`. The lock is an empty SQLite file,
 * used for the kernel's file lock behind it, which Node offers nowhere else. It ends with its process, also after a crash. A lock
 * that is only the existence of a file would outlive a kill, and cannot be broken without a race.
 */
export function withFileLock<T>(path: string, work: () => T): T {
  const lock = takeLock(path);
  try {
    return work();
  } finally {
    lock.close();
  }
}

function takeLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    makePrivate(path);
    lock = new DatabaseSync(path, { timeout: LOCK_WAIT_MS });
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    lock?.close();
    throw new ports.SecretsUnavailable("The lock of the secrets' file cannot be taken", { cause });
  }
}

/** Every process that can read a lock's file can hold the lock. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
