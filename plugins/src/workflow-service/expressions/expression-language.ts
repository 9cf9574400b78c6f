import { Duration, Environment } from "@marcbachmann/cel-js/evaluator";
import { isExistingDay, parseJson } from "@portico/core";
import { RE2JS } from "re2js";
import { toCelValue, Refused } from "./cel-value.ts";
import { MATCHED_LENGTH, PATTERN_LENGTH } from "./expression-limits.ts";
import { registerCharacters } from "./characters.ts";
import { registerLibrary } from "./function-library.ts";
import { childrenOf, type Comprehension, type SyntaxNode, isSyntaxNode } from "./syntax-tree.ts";

/** Names with which an expression can begin. A separate check decides where each name is allowed. */
export const ROOT_NAMES = [
  "parameters",
  "nodes",
  "run",
  "secrets",
  "item",
  "index",
  "previous",
  "gate",
  "callback",
  "failure",
  "error",
] as const;

/**
 * Functions of the library, and their replacements. JavaScript's regular expressions, which the library uses for patterns and durations,
 * can run without end on texts of authors or callers. The library reads 30 February as 2 March, counts a character beyond 16 bits as two,
 * changes digits of large numbers, and lets `lowerAscii` and `upperAscii` change letters beyond ASCII.
 */
export const REPLACED_FUNCTIONS: Readonly<Record<string, string>> = {
  ...{ matches: "boundedMatches", duration: "boundedDuration", timestamp: "strictTimestamp", json: "exactJson" },
  ...{ indexOf: "indexOfCharacters", lastIndexOf: "lastIndexOfCharacters", substring: "characterSubstring" },
  ...{ split: "characterSplit", lowerAscii: "lowerAsciiLetters", upperAscii: "upperAsciiLetters" },
};

/** CEL with additional operators for JSON: numbers of JSON are doubles, but number literals in expressions are integers. */
export function createLanguage(spend: (steps: number) => void): Environment {
  const language = new Environment({
    unlistedVariablesAreDyn: false,
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: 5000, maxDepth: 100 },
  });
  for (const name of ROOT_NAMES) language.registerVariable(name, "dyn");
  for (const [operator, compute] of Object.entries(ARITHMETIC)) {
    language.registerOperator(`double ${operator} int`, (left: number, right: bigint) => compute(left, Number(right)));
    language.registerOperator(`int ${operator} double`, (left: bigint, right: number) => compute(Number(left), right));
  }
  language.registerOperator("double % double", ARITHMETIC["%"]);
  // The library already has the reverse order.
  language.registerOperator("int == double", (left: bigint, right: number) => Number(left) === right);
  language.registerFunction("string.boundedMatches(string): bool", (text: string, pattern: string) => {
    if (text.length > MATCHED_LENGTH) throw new Refused(`matches() takes texts of at most ${MATCHED_LENGTH} characters`);
    const compiled = compilePattern(pattern);
    spend(Math.ceil((text.length * (pattern.length + 1)) / 16));
    return compiled.test(text);
  });
  language.registerFunction("boundedDuration(string): google.protobuf.Duration", toDuration);
  language.registerFunction(`strictTimestamp(string): ${TIMESTAMP}`, readTimestamp);
  language.registerFunction(`strictTimestamp(int): ${TIMESTAMP}`, (seconds: bigint) => timestampOf(Number(seconds) * 1000));
  language.registerFunction("bytes.exactJson(): map", (bytes: Uint8Array) =>
    toCelValue(parseJson(Buffer.from(bytes).toString())),
  );
  language.registerFunction("string.lowerAsciiLetters(): string", (text: string) => {
    spend(text.length >> 6);
    return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  });
  language.registerFunction("string.upperAsciiLetters(): string", (text: string) => {
    spend(text.length >> 6);
    return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
  });
  registerCharacters(language, spend);
  registerLibrary(language, spend);
  return language;
}

const TIMESTAMP = "google.protobuf.Timestamp";
const ISO_TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function readTimestamp(text: string): Date {
  const isTime = ISO_TIME.test(text) && isExistingDay(text);
  return timestampOf(isTime ? Date.parse(`${text.slice(0, 10)}T${text.slice(11).toUpperCase()}`) : Number.NaN);
}

/** CEL knows the years 1 to 9999. */
function timestampOf(ms: number): Date {
  if (ms >= -62_135_596_800_000 && ms <= 253_402_300_799_999) return new Date(ms);
  throw new Refused("this is not a timestamp");
}

const ARITHMETIC = {
  "+": (left: number, right: number) => left + right,
  "-": (left: number, right: number) => left - right,
  "*": (left: number, right: number) => left * right,
  "/": (left: number, right: number) => left / right,
  "%": (left: number, right: number) => left % right,
} as const;

const PATTERNS_KEPT = 200;
const patterns = new Map<string, RE2JS>();

/** A regular expression whose time is proportional to the text (RE2). Throws Refused. */
export function compilePattern(pattern: string): RE2JS {
  const known = patterns.get(pattern);
  if (known) return known;
  if (pattern.length > PATTERN_LENGTH) throw new Refused(`A regular expression has at most ${PATTERN_LENGTH} characters`);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch {
    throw new Refused("Invalid regular expression (RE2 syntax: without look-around and back references)");
  }
  // Patterns can be computed from data of callers.
  if (patterns.size >= PATTERNS_KEPT) patterns.clear();
  patterns.set(pattern, compiled);
  return compiled;
}

const DURATION = /^[+-]?(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h)){1,7}$/;
const PARTS = /(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)/g;
const SECONDS = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 } as const;

/** CEL's durations, to the millisecond: `1h30m`, `1.5s`. */
function toDuration(text: string): Duration {
  if (text.length > 100 || !DURATION.test(text)) throw new Refused("duration() takes texts such as 1h30m or 1.5s");
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(PARTS)) seconds += Number(amount) * SECONDS[unit as keyof typeof SECONDS];
  return Duration.fromMilliseconds((text.startsWith("-") ? -1 : 1) * Math.round(seconds * 1000));
}

/** Operators whose time grows with the size of their operands, and how many elements of a list they process in one step. */
const SIZED: Readonly<Record<string, number>> = { "+": 8, in: 32, "==": 32, "!=": 32, call: 8, rcall: 8 };

/**
 * Makes a parsed expression report its cost during evaluation. `spend` throws if the cost is too high. Call it before the expression is
 * checked or evaluated. The library limits only the length of an expression: `all` in `all` over a long list takes minutes, and sums of
 * sums fill the memory. It also allows branches of `? :` with different types, as JSON has them.
 */
export function boundCost(node: SyntaxNode, spend: (steps: number) => void): void {
  const { alternate } = node.meta;
  if (alternate?.op === "comprehension") {
    const turns = alternate.args as Comprehension;
    const { condition } = turns;
    turns.condition = (soFar) => {
      spend(1);
      return condition ? condition(soFar) : true;
    };
  }
  if ((node.op === "call" || node.op === "rcall") && Array.isArray(node.args)) {
    const name = node.args[0] as string;
    if (Object.hasOwn(REPLACED_FUNCTIONS, name)) (node.args as unknown[])[0] = REPLACED_FUNCTIONS[name];
  }
  const isMacro = alternate !== undefined || node.meta.macro !== undefined;
  if (node.op === "?:") allowAnyBranches(node);
  if (node.op === "map") for (const [key] of node.args as [SyntaxNode, SyntaxNode][]) refuseLostKeys(key);
  // A list knows its size, so `size` costs nothing.
  const isSize = Array.isArray(node.args) && node.args[0] === "size";
  const elements = isMacro || isSize ? undefined : SIZED[node.op];
  for (const child of childrenOf(node)) {
    if (elements !== undefined) chargeFor(child, elements, spend);
    boundCost(child, spend);
  }
}

function chargeFor(operand: SyntaxNode, elements: number, spend: (steps: number) => void): void {
  // Literals are short, because the expression is. The result of a comprehension was charged when it was made.
  if (operand.op === "value" || operand.meta.alternate !== undefined || operand.meta.macro !== undefined) return;
  const { evaluate } = operand.meta;
  operand.setMeta("evaluate", (evaluator, node, context) => {
    const value: unknown = evaluate(evaluator, node, context);
    if (typeof value === "string") spend(value.length >> 6);
    else if (Array.isArray(value)) spend(Math.floor(value.length / elements));
    return value;
  });
}

/** The library silently leaves out these keys of a map that an expression makes. */
export const LOST_KEYS: ReadonlySet<unknown> = new Set(["__proto__", "constructor", "prototype"]);

/** The sentence about a key of `LOST_KEYS`. */
export const lostKey = (key: unknown): string => `An expression cannot make a key "${String(key)}"`;

function refuseLostKeys(key: SyntaxNode): void {
  const { evaluate } = key.meta;
  key.setMeta("evaluate", (evaluator, node, context) => {
    const value: unknown = evaluate(evaluator, node, context);
    if (LOST_KEYS.has(value)) throw new Refused(lostKey(value));
    return value;
  });
}

function allowAnyBranches(ternary: SyntaxNode): void {
  const { check } = ternary.meta;
  ternary.setMeta("check", (checker, node, context) => {
    try {
      return check(checker, node, context);
    } catch (cause) {
      const { code, node: at } = cause as { code?: string; node?: unknown };
      if (code === "incompatible_ternary_branches" && at === ternary) return checker.getType("dyn");
      throw cause;
    }
  });
}

/** Functions whose result contains no new text. A secret in the result is still found in its original form. */
const MAKES_NO_TEXT = new Set([
  ...["has", "size", "contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf", "type", "dyn", "bool"],
  ...["all", "exists", "exists_one", "map", "filter", "bind", "timestamp", "duration"],
  ...["sort", "sortBy", "distinct", "flatten", "first", "last", "intersects", "equivalent"],
]);

const ROOTS: ReadonlySet<unknown> = new Set(ROOT_NAMES);

/**
 * The paths that an expression reads, if it may make new texts of the values. `secrets.KEY.upperAscii()` makes a new text.
 * `"Bearer " + secrets.KEY` does not, because the secret is found in it. Undefined if the expression makes no new texts.
 */
export function derivingReads(tree: SyntaxNode): readonly (readonly string[])[] | undefined {
  if (!makesTexts(tree)) return undefined;
  const reads: (readonly string[])[] = [];
  collect(tree, reads);
  return reads.length > 0 ? reads : undefined;
}

/** The value at a path, or its nearest existing parent. Lists, and values that are accessed with brackets, are taken whole. */
export function readAlong(scope: object, path: readonly string[]): unknown {
  let value: unknown = scope;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function makesTexts(node: SyntaxNode): boolean {
  const isCall = node.op === "call" || node.op === "rcall";
  if (isCall && !MAKES_NO_TEXT.has((node.args as [string])[0])) return true;
  return childrenOf(node).some(makesTexts);
}

function collect(node: SyntaxNode, reads: (readonly string[])[]): void {
  const path = pathOf(node);
  if (path && ROOTS.has(path[0])) reads.push(path);
  else for (const child of childrenOf(node)) collect(child, reads);
}

/** `root.a.b`. An access with brackets counts as an access to the whole value before the brackets. */
function pathOf(node: SyntaxNode): readonly string[] | undefined {
  if (node.op === "id") return [node.args as string];
  if (node.op === ".") {
    const [of, key] = node.args as [SyntaxNode, string];
    const path = pathOf(of);
    return path && [...path, key];
  }
  if (node.op !== "[]") return undefined;
  const [of, key] = node.args as [SyntaxNode, unknown];
  return isSyntaxNode(key) && key.op === "value" ? pathOf(of) : undefined;
}
