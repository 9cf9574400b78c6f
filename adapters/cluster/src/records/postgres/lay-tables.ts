import { stepsFrom, StoreUnmigrated } from "@portico/core";
import type { PoolClient } from "./connections.ts";

/** Tables of one owner in a schema, with their own format. */
export interface TableLayout {
  /** Name of the store in messages. */
  readonly store: string;
  /** The row with the format of the existing tables. Undefined without tables. */
  format(client: PoolClient): Promise<FormatRow | undefined>;
  /** Creates tables of the newest format, without its mark. */
  make(client: PoolClient): Promise<unknown>;
  /** SQL that converts each format to the next, starting at format 1. The data in the tables is kept. */
  readonly steps: readonly string[];
  /** SQL that stores the format of the tables. */
  mark(format: number): string;
}

/** How an owner's tables tell their format: its row, with all columns. */
export interface FormatRow {
  readonly format: unknown;
  /**
   * The oldest format whose versions can read and write these tables. A column of this name is added by the first step that keeps
   * earlier versions running, so that processes can be upgraded one after another. Missing: only versions that know the format.
   */
  readonly oldest?: unknown;
}

/** How tables are read, and how one process at a time changes them in one transaction. */
export interface TableAccess {
  read<T>(work: (client: PoolClient) => Promise<T>): Promise<T>;
  make(work: (client: PoolClient) => Promise<void>): Promise<void>;
  /** Whether opening creates and converts tables. If false, it refuses tables that need this. */
  readonly migrates: boolean;
}

/**
 * Create missing tables, and convert those of an earlier format to the newest. Throws StoreTooNew for tables of a newer version
 * that this one cannot use, and StoreUnmigrated if `access` does not migrate; or the errors that `access` makes of them.
 */
export async function layTables({ read, make: change, migrates }: TableAccess, layout: TableLayout): Promise<void> {
  const { store, format, make, steps, mark } = layout;
  const isUsable = (found: FormatRow | undefined) => found !== undefined && missingSteps(store, found, steps).length === 0;
  const isReady = await read(async (client) => {
    const found = await format(client);
    const usable = isUsable(found);
    if (!usable && !migrates) throw new StoreUnmigrated(store, found && Number(found.format), steps.length + 1);
    return usable;
  });
  if (isReady) return;
  await change(async (client) => {
    // Checked again inside: another process may have created them meanwhile.
    const present = await format(client);
    if (isUsable(present)) return;
    if (present === undefined) await make(client);
    else for (const step of missingSteps(store, present, steps)) await client.query(step);
    await client.query(mark(steps.length + 1));
  });
}

function missingSteps(store: string, { format, oldest }: FormatRow, steps: readonly string[]): readonly string[] {
  const newest = steps.length + 1;
  const isForThisVersion = Number(format) > newest && Number.isSafeInteger(oldest) && Number(oldest) <= newest;
  return isForThisVersion ? [] : stepsFrom(store, format, steps);
}
