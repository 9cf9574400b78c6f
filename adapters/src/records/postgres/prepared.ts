import { hash } from "node:crypto";
import type { PoolClient } from "./connections.ts";

const names = new Map<string, string>();

/** Run a statement that a connection parses and plans once. The number of different texts must be limited. Returns its rows. */
export async function prepared<Row extends object>(
  client: PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return (await client.query<Row>({ name: nameOf(text), text, values: [...values] })).rows;
}

function nameOf(text: string): string {
  const name = names.get(text) ?? hash("sha256", text, "base64url").slice(0, 24);
  names.set(text, name);
  return name;
}
