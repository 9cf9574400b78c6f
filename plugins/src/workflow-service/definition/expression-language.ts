import { Duration, Environment } from "@marcbachmann/cel-js/evaluator";
import { isExistingDay, parseJson } from "@portico/core";
import { RE2JS } from "re2js";
import { toCelValue } from "./cel-value.ts";
import { MATCHED_LENGTH, PATTERN_LENGTH } from "./definition-limits.ts";
import { registerCharacters } from "./functions/characters.ts";
import { registerLibrary } from "./functions/function-library.ts";
import { Refused } from "./refused.ts";

/** Names with which an expression can begin. A separate check decides where each name is allowed. */
export const ROOT_NAMES = ["parameters", "nodes", "run", "secrets", "item", "index", "previous", "gate", "failure"] as const;

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
