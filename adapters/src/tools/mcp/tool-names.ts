import { createHash } from "node:crypto";

/** Maximum length in both model protocols. */
const LONGEST = 64;
const HASH_LENGTH = 8;

/**
 * Names for models, by tool ID: `server_tool` in letters, digits, `_` and `-`. A name that is too long, or that two tools would
 * share, ends with a hash of the ID for each of them. A name never depends on the order in which a server lists its tools.
 */
export function nameTools(server: string, ids: readonly string[]): ReadonlyMap<string, string> {
  const plain = ids.map((id) => [id, `${server}_${id.slice(server.length + 1)}`.replaceAll(/[^A-Za-z0-9_-]/g, "_")] as const);
  const uses = new Map<string, number>();
  for (const [, name] of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
  return new Map(plain.map(([id, name]) => [id, name.length <= LONGEST && uses.get(name) === 1 ? name : hashed(id, name)]));
}

function hashed(id: string, name: string): string {
  const hash = createHash("sha256").update(id).digest("hex").slice(0, HASH_LENGTH);
  return `${name.slice(0, LONGEST - HASH_LENGTH - 1)}_${hash}`;
}
