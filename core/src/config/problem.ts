/** One problem of a configuration. Holds no value of a secret or of an unknown key. */
export interface ConfigProblem {
  /** `proxy.listen.port`; items of lists by their index; empty for the whole configuration. */
  readonly path: string;
  readonly expected: string;
  readonly found: string;
  /** `file portico.config.json`, `environment PORTICO_PROXY_PORT`, `flag --data-dir`. */
  readonly source?: string | undefined;
  readonly hint?: string | undefined;
}

/** Thrown by `loadConfig`: every problem at once, one line each. */
export class ConfigUnusable extends Error {
  override readonly name = "ConfigUnusable";
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(problemLine).join("\n"));
    this.problems = problems;
  }
}

/** A value as a report may show it: scalars unchanged, all others by their kind. The result has no line breaks. */
export function foundValue(value: unknown): string {
  if (typeof value !== "string") return foundKind(value, String(value));
  const shown = value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}…` : value;
  // A URL may hold a password, also in a key that takes no URL.
  return JSON.stringify(shown.replace(/\/\/[^/?#\s]*@/g, "//***@"));
}

/** The kind of a value, without the value. */
export function foundKind(value: unknown, scalar?: string): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "function") return "a function";
  return scalar ?? `a ${typeof value}`;
}

const SHOWN_LENGTH = 60;

/** A problem as a line for people. */
export function problemLine({ path, expected, found, source, hint }: ConfigProblem): string {
  return `${path || "(configuration)"}: expected ${expected}, found ${found}${source ? ` (${source})` : ""}${hint ? `; ${hint}` : ""}`;
}
