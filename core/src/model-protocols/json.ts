import { quoteLongNumbers } from "../kit/parse-json.ts";

/** A JSON value as `JSON.parse` gives it, or as `parseExactly` does. */
export type Json = null | boolean | number | string | ExactNumber | readonly Json[] | JsonObject;

/** A JSON object whose values are not yet known. */
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** A JSON object that is still being built. */
export type JsonObjectDraft = { [key: string]: Json | undefined };

/** Whether a parsed value is an object (and neither an array nor null nor a number). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** Begins the string of a number while JSON is read or written. No text from outside has it. */
const MARK = `number-${crypto.getRandomValues(new BigUint64Array(2)).join("")}:`;

/** A number whose digits a JavaScript number would change. */
export class ExactNumber {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }

  /** `writeExactly` replaces this string by the number. */
  toJSON(): string {
    return MARK + this.digits;
  }
}

/**
 * Parses a JSON text whose values are written again. As `JSON.parse`, except that a number whose digits a JavaScript number would change is an
 * `ExactNumber`. Throws SyntaxError for invalid JSON.
 */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const quoted = quoteLongNumbers(text, (number) => (String(Number(number)) === number ? undefined : MARK + number));
  return quoted === undefined ? value : JSON.parse(quoted, toNumber);
}

/** The JSON text of an object or array, in which an `ExactNumber` has its digits. Throws as `JSON.stringify`. */
export function writeExactly(value: object): string {
  const text = JSON.stringify(value);
  const pieces = text.split(`"${MARK}`);
  // Each piece but the first begins with the digits and the quotation mark after them.
  return pieces.map((piece, at) => (at === 0 ? piece : piece.replace('"', ""))).join("");
}

function toNumber(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.startsWith(MARK) ? new ExactNumber(value.slice(MARK.length)) : value;
}
