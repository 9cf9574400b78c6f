import { hash } from "node:crypto";

const HASH_CHARACTERS = 8;

/** Names of tools that a provider accepts, each from one name of the caller. */
export class ToolNames {
  readonly originals = new Map<string, string>();
  readonly #most: number;
  readonly #form: RegExp;

  /**
   * `most`: maximum characters. `beginsWithLetter`: Gemini and Kimi refuse other names: kaitranntt/ccs#25, MoonshotAI/kimi-cli#1773.
   */
  constructor(most: number, { beginsWithLetter = false }: { readonly beginsWithLetter?: boolean } = {}) {
    this.#most = most;
    this.#form = beginsWithLetter ? /^[a-zA-Z][a-zA-Z0-9_-]*$/ : /^[a-zA-Z0-9_-]+$/;
  }

  /**
   * Valid names stay. Others get valid characters, and the beginning of their hash, so that two names never become one. Servers of MCP name
   * tools with over 64 characters (anomalyco/opencode#3523), and models invent names such as `functions.search web` (mcp-use/mcp-use#90).
   */
  accepted(name: unknown): unknown {
    if (typeof name !== "string" || (name.length <= this.#most && this.#form.test(name))) return name;
    const end = hash("sha256", name, "hex").slice(0, HASH_CHARACTERS);
    const valid = name.slice(0, this.#most).replace(/[^a-zA-Z0-9_-]/g, "_");
    const start = this.#form.test(valid) ? valid : `tool_${valid}`;
    const fitted = `${start.slice(0, this.#most - HASH_CHARACTERS - 1)}_${end}`;
    this.originals.set(fitted, name);
    return fitted;
  }
}
