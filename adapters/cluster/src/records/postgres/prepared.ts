import { hash } from "node:crypto";
import type { PoolClient } from "pg";

const names = new Map<string, string>();
/** Connections that must not prepare statements. */
const unprepared = new WeakSet<PoolClient>();

/** Make a connection parse and plan its statements each time, for poolers that lose prepared statements. */
export function neverPrepare(client: PoolClient): void {
  unprepared.add(client);
}

/**
 * Run a statement that a connection parses and plans once, unless it must never prepare. The number of different texts must be limited.
 * Returns its rows.
 */
export async function prepared<Row extends object>(
  client: PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  const name = unprepared.has(client) ? undefined : nameOf(text);
  return (await client.query<Row>({ ...(name !== undefined && { name }), text, values: [...values] })).rows;
}

function nameOf(text: string): string {
  const name = names.get(text) ?? hash("sha256", text, "base64url").slice(0, 24);
  names.set(text, name);
  return name;
}
