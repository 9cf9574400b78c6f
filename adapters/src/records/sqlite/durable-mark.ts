import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";

/** A file next to a database: the version of the store that was certainly on the disk. */
export const markPath = (database: string): string => `${database}-mark`;

/** Always of the same length: rewriting it needs no space on the disk. */
const DIGITS = 20;
const MARK = /^ *(\d{1,16})\n$/;

/**
 * Records the version of a store outside of the store. If a write-ahead log is deleted, cut or damaged, the database still looks
 * complete; the mark reveals the loss. It is written after each sync and is not synced itself, so it never claims too much. A
 * killed process loses no part of it. After a power failure, it may hold an older version.
 */
export interface DurableMark {
  write(version: number): void;
  close(): void;
}

/**
 * The mark of a store. Undefined if its file cannot be opened. Without a writable mark, losses are not detected, but the store
 * works.
 */
export function openMark(database: string): DurableMark | undefined {
  let file: number;
  try {
    file = openSync(markPath(database), constants.O_RDWR | constants.O_CREAT, 0o600);
  } catch {
    return undefined;
  }
  return {
    write(version) {
      try {
        const line = Buffer.from(`${String(version).padStart(DIGITS)}\n`);
        // Bytes, not a string: for strings, Deno ignores the position.
        writeSync(file, line, 0, line.length, 0);
      } catch {
        // A full disk: an older mark is still correct.
      }
    },
    close: () => closeSync(file),
  };
}

/** Write the mark of a database that no process has open, for example of a restored one. */
export function writeMark(database: string, version: number): void {
  const mark = openMark(database);
  mark?.write(version);
  mark?.close();
}

/** The version in the mark of a database. Undefined without a readable mark. */
export function readMark(database: string): number | undefined {
  try {
    const found = MARK.exec(readFileSync(markPath(database), "latin1"))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}
