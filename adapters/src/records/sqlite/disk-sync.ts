import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { patiently } from "./busy.ts";

/** Makes what was committed durable, without the event loop waiting for the disk. */
export interface DiskSync {
  /** Tells once what was committed before this call is on the disk, or what kept it from there. One at a time. */
  start(told: (error?: unknown) => void): void;
  /** The same, waiting. Throws what keeps it from the disk. */
  wait(): void;
  /** Call no other afterwards. */
  close(): void;
}

/**
 * Takes the syncing of commits over from SQLite. In WAL mode a commit is durable when the write-ahead log is synced; SQLite would do that
 * within COMMIT, and hold this thread. With `synchronous = NORMAL` it leaves it, except before it moves the log into the file, and we sync
 * the same file on a thread of the pool. Undefined for a database that has no file.
 */
export function takeOverSync(database: DatabaseSync): DiskSync | undefined {
  const path = database.location();
  if (path === null) return undefined;
  // A first commit in SQLite's own way makes the log's file where it is missing, and its name in the folder durable.
  patiently(() => database.exec(`PRAGMA synchronous = FULL; UPDATE "_store" SET version = version; PRAGMA synchronous = NORMAL`));
  // No lock stands on this file, so that closing our descriptor drops none of SQLite's.
  const file = openSync(`${path}-wal`, "r+");
  let isBusy = false;
  let isClosed = false;
  return {
    start(told) {
      isBusy = true;
      fdatasync(file, (error) => {
        isBusy = false;
        if (isClosed) closeSync(file);
        told(error ?? undefined);
      });
    },
    wait: () => fdatasyncSync(file),
    close() {
      isClosed = true;
      if (!isBusy) closeSync(file);
    },
  };
}
