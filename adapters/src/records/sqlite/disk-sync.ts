import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { patiently } from "./busy.ts";
import { openMark } from "./durable-mark.ts";

/** Makes commits durable without blocking the event loop. */
export interface DiskSync {
  /**
   * Calls `told` once, when all commits from before this call, up to this version of the store, are on the disk and marked, or
   * with the error that prevented it. One call at a time.
   */
  start(version: number, told: (error?: unknown) => void): void;
  /** The same, synchronously. Throws the error that prevents the sync. */
  wait(version: number): void;
  /** Call no other method afterwards. */
  close(): void;
}

/**
 * Takes over the syncing of commits from SQLite. In WAL mode, a commit is durable when the write-ahead log is synced. SQLite
 * would sync within COMMIT and block this thread. With `synchronous = NORMAL` it syncs only before it moves the log into the
 * file, and this code syncs the same file on a thread of the pool. Undefined for a database without a file.
 */
export function takeOverSync(database: DatabaseSync): DiskSync | undefined {
  const path = database.location();
  if (path === null) return undefined;
  // The first commit uses SQLite's own sync. It creates a missing log file, and makes its name in the folder durable.
  patiently(() => database.exec(`PRAGMA synchronous = FULL; UPDATE "_store" SET version = version; PRAGMA synchronous = NORMAL`));
  // SQLite has no lock on this file, so closing our descriptor releases none.
  const file = openSync(`${path}-wal`, "r+");
  const mark = openMark(path);
  const close = (): void => {
    closeSync(file);
    mark?.close();
  };
  let isBusy = false;
  let isClosed = false;
  return {
    start(version, told) {
      isBusy = true;
      fdatasync(file, (error) => {
        isBusy = false;
        // Written before any writer is answered, so that the mark covers every acknowledged write.
        if (!error && !isClosed) mark?.write(version);
        if (isClosed) close();
        told(error ?? undefined);
      });
    },
    wait(version) {
      fdatasyncSync(file);
      mark?.write(version);
    },
    close() {
      isClosed = true;
      if (!isBusy) close();
    },
  };
}
