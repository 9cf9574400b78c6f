import { UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { chargeForText, type FunctionGroup, type Spend, chargeForValue } from "./library-function.ts";
import { characterAt, partsOf } from "./characters.ts";
import { Refused, toJson } from "./cel-value.ts";

/** Texts: those of CEL, and of its extension library `strings`. */
export const textFunctions: FunctionGroup = {
  title: "Texts",
  functions: [
    { usage: "size(TEXT)", summary: "The number of characters.", example: ["size('añb')", 3] },
    {
      usage: "TEXT.contains(PART)",
      summary: "Whether a text contains another text.",
      example: ["'report'.contains('port')", true],
    },
    {
      usage: "TEXT.startsWith(PART), TEXT.endsWith(PART)",
      summary: "Whether a text begins or ends with another text.",
      example: ["'report'.startsWith('re') && 'report'.endsWith('rt')", true],
    },
    {
      usage: "TEXT.matches(PATTERN)",
      summary: "Whether an RE2 regular expression matches.",
      example: ["'v12'.matches('^v[0-9]+$')", true],
    },
    {
      usage: "TEXT.indexOf(PART), TEXT.lastIndexOf(PART)",
      summary: "The first or last position of another text, or -1. A second argument is the position at which the search begins.",
      example: ["['banana'.indexOf('an'), 'banana'.lastIndexOf('an')]", [1, 3]],
    },
    {
      usage: "TEXT.substring(START, END)",
      summary: "The characters from START up to END; END can be omitted.",
      example: ["'banana'.substring(1, 3)", "an"],
    },
    {
      usage: "TEXT.charAt(INDEX)",
      summary: "The character at a position, or an empty text at the end.",
      example: ["'abc'.charAt(1)", "b"],
      overloads: (spend) => ({
        "string.charAt(int): string": (text: string, index: bigint) => {
          spend(1 + (text.length >> 6));
          return characterAt(text, index);
        },
      }),
    },
    {
      usage: "TEXT.lowerAscii(), TEXT.upperAscii()",
      summary: "The text with its letters A to Z in lowercase or uppercase. Other letters stay as they are.",
      example: ["'AbÄ'.lowerAscii() + 'Abä'.upperAscii()", "abÄABä"],
    },
    { usage: "TEXT.trim()", summary: "The text without space at both ends.", example: ["'  a b '.trim()", "a b"] },
    {
      usage: "TEXT.split(SEPARATOR)",
      summary: "The parts between the separators.",
      example: ["'a,b,c'.split(',')", ["a", "b", "c"]],
    },
    { usage: "LIST.join(SEPARATOR)", summary: "One text of a list of texts.", example: ["['a', 'b'].join('-')", "a-b"] },
    {
      usage: "TEXT.replace(OLD, NEW, LIMIT)",
      summary: "Replaces a text wherever it occurs, or its first LIMIT occurrences. It takes no pattern.",
      example: ["'a-b-c'.replace('-', '+', 1)", "a+b-c"],
      overloads: (spend) => ({
        "string.replace(string, string): string": (text: string, old: string, next: string) =>
          replaced(text, { old, next, limit: Number.POSITIVE_INFINITY }, spend),
        "string.replace(string, string, int): string": (text: string, old: string, next: string, limit: bigint) =>
          replaced(text, { old, next, limit: limit < 0n ? Number.POSITIVE_INFINITY : Number(limit) }, spend),
      }),
    },
    {
      usage: "TEXT.format(LIST)",
      summary:
        "Fills in the values of a list: `%s` any value, `%d` a whole number, `%.2f` a number with two decimals, `%e`, `%b`, `%o`, `%x`, `%X`; `%%` is a percent sign.",
      example: ["'%s: %d of %.1f'.format(['done', 3, 4.25])", "done: 3 of 4.3"],
      overloads: (spend) => ({
        "string.format(list): string": (text: string, values: readonly unknown[]) => formatText(text, values, spend),
      }),
    },
    {
      usage: "TEXT.reverse()",
      summary: "The characters in reverse order.",
      example: ["'abc'.reverse()", "cba"],
      overloads: (spend) => ({
        "string.reverse(): string": (text: string) => {
          spend(text.length >> 3);
          return [...text].reverse().join("");
        },
      }),
    },
  ],
};

interface Replacement {
  readonly old: string;
  readonly next: string;
  readonly limit: number;
}

function replaced(text: string, { old, next, limit }: Replacement, spend: Spend): string {
  // An empty text occurs before each character, and at the end.
  const parts = partsOf(text, old);
  spend(parts.length >> 3);
  const pieces = old === "" ? ["", ...parts, ""] : parts;
  const count = Math.min(limit, pieces.length - 1);
  chargeForText(text.length + count * Math.max(0, next.length - old.length), spend);
  return `${pieces.slice(0, count + 1).join(next)}${pieces
    .slice(count + 1)
    .map((piece) => old + piece)
    .join("")}`;
}

const CLAUSE = /%(?:\.(\d{1,3}))?(.)?/gsu;
const RADIX: Readonly<Record<string, number>> = { d: 10, b: 2, o: 8, x: 16, X: 16 };
const MOST_DECIMALS = 20;

/** CEL's `format`. Throws Refused if a value is missing, left over, or does not fit its clause. */
function formatText(text: string, values: readonly unknown[], spend: Spend): string {
  let used = 0;
  let characters = text.length;
  chargeForText(characters, spend);
  const made = text.replace(CLAUSE, (clause, decimals: string | undefined, verb: string | undefined) => {
    if (clause === "%%") return "%";
    if (used >= values.length) throw new Refused("format() has fewer values than its text needs");
    const filled = fill(values[used++], { verb: verb ?? "", decimals: decimals === undefined ? 6 : Number(decimals) }, spend);
    characters += filled.length;
    chargeForText(characters, () => {});
    chargeForText(filled.length, spend);
    return filled;
  });
  if (used < values.length) throw new Refused("format() has more values than its text needs");
  return made;
}

interface Clause {
  readonly verb: string;
  readonly decimals: number;
}

function fill(value: unknown, { verb, decimals }: Clause, spend: Spend): string {
  if (decimals > MOST_DECIMALS) throw new Refused(`format() writes at most ${MOST_DECIMALS} decimals`);
  const radix = RADIX[verb];
  if (verb === "s") return shown(value, spend);
  if (verb === "f") return numberOf(value, verb).toFixed(decimals);
  if (verb === "e")
    return numberOf(value, verb)
      .toExponential(decimals)
      .replace(/e([+-])(\d)$/, "e$10$2");
  if (radix !== undefined) return inRadix(value, verb, radix);
  throw new Refused("format() knows %s, %d, %f, %e, %b, %o, %x, %X and %%");
}

function shown(value: unknown, spend: Spend): string {
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return String(value);
  chargeForValue(value, spend);
  const json = toJson(value);
  return typeof json === "string" ? json : JSON.stringify(json);
}

function inRadix(value: unknown, verb: string, radix: number): string {
  if (verb === "b" && typeof value === "boolean") return value ? "1" : "0";
  const number = numberOf(value, verb);
  if (typeof value === "number" && !Number.isInteger(value)) throw new Refused(`format() takes a whole number for %${verb}`);
  const digits = typeof value === "bigint" ? value.toString(radix) : BigInt(number).toString(radix);
  return verb === "X" ? digits.toUpperCase() : digits;
}

function numberOf(value: unknown, verb: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof UnsignedInt) return Number(value.valueOf());
  throw new Refused(`format() takes a number for %${verb}`);
}
