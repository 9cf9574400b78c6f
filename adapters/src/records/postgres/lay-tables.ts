import { stepsFrom } from "@portico/core";
import type { PoolClient } from "./connections.ts";

/** Tables of one owner in a schema, with their own format. */
export interface TableLayout {
  /** Name of the store in messages. */
  readonly store: string;
  /** The format of the existing tables. Undefined without tables. */
  format(client: PoolClient): Promise<unknown>;
  /** Creates tables of the newest format, without its mark. */
  make(client: PoolClient): Promise<unknown>;
  /** SQL that converts each format to the next, starting at format 1. The data in the tables is kept. */
  readonly steps: readonly string[];
  /** SQL that stores the format of the tables. */
  mark(format: number): string;
}

/** How tables are read, and how one process at a time changes them in one transaction. */
export interface TableAccess {
  read<T>(work: (client: PoolClient) => Promise<T>): Promise<T>;
  make(work: (client: PoolClient) => Promise<void>): Promise<void>;
}

/**
 * Create missing tables, and convert those of an earlier format to the newest. Throws StoreTooNew for tables of a newer version,
 * or the error that `access` makes of it.
 */
export async function layTables({ read, make: change }: TableAccess, layout: TableLayout): Promise<void> {
  const { store, format, make, steps, mark } = layout;
  const isNewest = (found: unknown) => found !== undefined && stepsFrom(store, found, steps).length === 0;
  if (await read(async (client) => isNewest(await format(client)))) return;
  await change(async (client) => {
    // Checked again inside: another process may have created them meanwhile.
    const found = await format(client);
    if (isNewest(found)) return;
    if (found === undefined) await make(client);
    else for (const step of stepsFrom(store, found, steps)) await client.query(step);
    await client.query(mark(steps.length + 1));
  });
}
