import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";

const LOCK_WAIT_MS = 5000;

/**
 * Run `work` while no other process, and nobody else in this one, holds the lock of that name. `work` must be synchronous. Throws
 * SecretsUnavailable when the lock cannot be had within 5 s, and whatever `work` throws. The lock is an empty SQLite file, for
 * the sake of the kernel's file lock behind it, which Node offers nowhere else: it ends with its process, however that dies. A
 * lock that is a file's mere existence outlives a kill, and can't be broken without a race.
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

/** Whoever can read a lock's file can hold it. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
