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

/**
 * The word among `known` that `written` probably means: at most a third of its letters differ, or only the case differs. In names
 * with parts, such as `PORTICO_PROXY_PORT` and `data-dir`, shared first and last parts do not count, because they would make any
 * two names similar. Undefined if no word is similar.
 */
export function nearestWord(written: string, known: Iterable<string>): string | undefined {
  const wanted = written.toLowerCase();
  // A very long key is not worth a comparison: it is not a misspelling.
  if (wanted.length > 64) return undefined;
  let nearest: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const word of known) {
    const [own, other] = differingParts(wanted, word.toLowerCase());
    const edits = editDistance(own, other);
    if (edits <= Math.max(1, Math.floor(own.length / 3)) && edits < fewest) [nearest, fewest] = [word, edits];
  }
  return nearest;
}

/** Two names without the parts that both begin with and both end with. */
function differingParts(one: string, other: string): readonly [string, string] {
  const [ones, others] = [one.split(PART), other.split(PART)];
  const most = Math.min(ones.length, others.length);
  let before = 0;
  while (before < most && ones[before] === others[before]) before++;
  let after = 0;
  while (after < most - before && ones.at(-1 - after) === others.at(-1 - after)) after++;
  const rest = (parts: readonly string[]) => parts.slice(before, parts.length - after).join("_");
  return [rest(ones), rest(others)];
}

const PART = /[_-]/;

/** Number of letters to insert, remove or replace. Two swapped neighbours count once. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      let edits = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (isSame ? 0 : 1));
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (isSwapped) edits = Math.min(edits, beforeLast[column - 2]! + 1);
      current.push(edits);
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length]!;
}
