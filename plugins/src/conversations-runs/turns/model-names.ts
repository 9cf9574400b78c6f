import { createHash } from "node:crypto";
import type { ports } from "@portico/core";

/** Maximum length in both model protocols. */
const LONGEST = 64;
const HASH_LENGTH = 8;

/**
 * The names by which a model calls tools, by tool id. Tools of different sources may have the same name, or a name that is too long: each of
 * them gets a name that ends in a hash of its id. A name does not depend on the order of the tools.
 */
export function modelNames(tools: readonly Pick<ports.ToolDefinition, "id" | "name">[]): ReadonlyMap<string, string> {
  const uses = new Map<string, number>();
  for (const { name } of tools) uses.set(name, (uses.get(name) ?? 0) + 1);
  return new Map(tools.map(({ id, name }) => [id, name.length <= LONGEST && uses.get(name) === 1 ? name : hashed(id, name)]));
}

function hashed(id: string, name: string): string {
  const hash = createHash("sha256").update(id).digest("hex").slice(0, HASH_LENGTH);
  return `${name.slice(0, LONGEST - HASH_LENGTH - 1)}_${hash}`;
}
