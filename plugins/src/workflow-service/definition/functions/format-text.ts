import { UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { Refused } from "../refused.ts";
import { toJson } from "../to-json.ts";
import { chargeForText, chargeForValue } from "./bounded-result.ts";
import type { Spend } from "./library-function.ts";

const CLAUSE = /%(?:\.(\d{1,3}))?(.)?/gsu;
const RADIX: Readonly<Record<string, number>> = { d: 10, b: 2, o: 8, x: 16, X: 16 };
const MOST_DECIMALS = 20;

/** CEL's `format`. Throws Refused if a value is missing, left over, or does not fit its clause. */
export function formatText(text: string, values: readonly unknown[], spend: Spend): string {
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
