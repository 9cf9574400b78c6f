import type { DatabaseSync } from "node:sqlite";
import { stepsFrom } from "@portico/core";
import { inOneCommit } from "./in-one-commit.ts";

/** Tables of one owner in a file, with their own format. */
export interface TableLayout {
  /** Name of the store in messages. */
  readonly store: string;
  /** The format of the existing tables. Undefined without tables. */
  format(): unknown;
  /** Creates tables of the newest format, without its mark. */
  make(): void;
  /** SQL that converts each format to the next, starting at format 1. The data in the tables is kept. */
  readonly steps: readonly string[];
  /** SQL that stores the format of the tables. */
  mark(format: number): string;
}

/**
 * Create missing tables, and convert those of an earlier format to the newest: in one commit, so that a kill leaves them
 * unchanged. Throws StoreTooNew for tables of a newer version, and errors of SQLite.
 */
export function layTables(database: DatabaseSync, { store, format, make, steps, mark }: TableLayout): void {
  const newest = steps.length + 1;
  if (isNewest(format())) return;
  inOneCommit(database, () => {
    // Checked again inside: another process may have created them meanwhile.
    const found = format();
    if (isNewest(found)) return;
    if (found === undefined) make();
    else for (const step of stepsFrom(store, found, steps)) database.exec(step);
    database.exec(mark(newest));
  });

  function isNewest(found: unknown): boolean {
    return found !== undefined && stepsFrom(store, found, steps).length === 0;
  }
}
