import { hash } from "node:crypto";

const HASH_CHARACTERS = 8;

/** Names of tools that a provider accepts, each from one name of the caller. */
export class ToolNames {
  readonly originals = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Valid names stay. Others get valid characters, and the beginning of their hash, so that two names never become one. Servers of MCP name
   * tools with over 64 characters (anomalyco/opencode#3523), and models invent names such as `functions.search web` (mcp-use/mcp-use#90).
   */
  accepted(name: unknown): unknown {
    if (typeof name !== "string" || (name.length <= this.#most && /^[a-zA-Z0-9_-]+$/.test(name))) return name;
    const end = hash("sha256", name, "hex").slice(0, HASH_CHARACTERS);
    const start = name.slice(0, this.#most - HASH_CHARACTERS - 1).replace(/[^a-zA-Z0-9_-]/g, "_");
    const fitted = `${start}_${end}`;
    this.originals.set(fitted, name);
    return fitted;
  }
}
