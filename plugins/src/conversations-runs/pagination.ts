import { hasAtMost, readSearchWords, RUN_SEARCH, SEARCH_TIME, searchTime, type ServiceError } from "@portico/core";
import * as v from "valibot";
import { agentErrors } from "./errors.ts";
import { PAGE_LIMIT_MAXIMUM } from "./limits.ts";

/** A query parameter as it came: twice is a list. */
export type Parameter = string | readonly string[] | undefined;

/** Reads a positive decimal integer; `otherwise` if it is missing. Throws `invalid_pagination` (specification 4.6 and 7.6). */
export function readPositive(name: string, value: Parameter, otherwise: number): number {
  const number = value === undefined ? otherwise : readInteger(name, value);
  if (number === 0) throw invalid(name, "a positive integer");
  return number;
}

/** Reads the `limit` of an extension's pages in the same way. Refuses a limit that is too high: a shorter page would look like the last one. */
export function readLimit(value: Parameter, otherwise: number, most: number = PAGE_LIMIT_MAXIMUM): number {
  const limit = readPositive("limit", value, otherwise);
  if (limit > most) throw invalid("limit", `at most ${most}`);
  return limit;
}

/** Reads a nonnegative decimal integer in the same way. */
export function readOffset(name: string, value: Parameter, otherwise: number): number {
  return value === undefined ? otherwise : readInteger(name, value);
}

/** A filter comes once and is not empty: an empty one is a mistake of the caller's and must not show everything. */
export function readFilter(name: string, value: Parameter): string | undefined {
  if (value === undefined || (typeof value === "string" && value !== "")) return value;
  throw agentErrors.invalid_filter(`Invalid filter: ${name} must be given once and not be empty`);
}

/** Reads a filter that is `true` or `false`. Throws `invalid_filter`, as the following functions do. */
export function readFlag(name: string, value: Parameter): boolean | undefined {
  const text = readOneOf(["true", "false"])(name, value);
  return text === undefined ? undefined : text === "true";
}

/** Reads a filter that is one of these words. */
export function readOneOf<const Word extends string>(words: readonly Word[]) {
  return (name: string, value: Parameter): Word | undefined => {
    const text = readFilter(name, value);
    if (text === undefined || words.includes(text as Word)) return text as Word | undefined;
    throw invalidFilter(name, words.length > 2 ? words.join(", ") : words.join(" or "));
  };
}

/** Reads the words of a search. */
export function readWords(name: string, value: Parameter): readonly string[] | undefined {
  const text = readFilter(name, value);
  const words = text === undefined || !hasAtMost(RUN_SEARCH.characters, text) ? undefined : readSearchWords(text);
  if (text === undefined || words) return words;
  throw invalidFilter(
    name,
    `1-${RUN_SEARCH.words} words of letters and digits, with at most ${RUN_SEARCH.characters} characters`,
  );
}

/** Reads a code, such as that of an error. */
export function readCode(name: string, value: Parameter): string | undefined {
  const text = readFilter(name, value);
  if (text === undefined || isCode(text)) return text;
  throw invalidFilter(name, "a code: 1-100 letters, digits, and the characters _ . -");
}

/** Whether a text has the form of a code. */
export function isCode(text: string): boolean {
  return /^[\w.-]{1,100}$/.test(text);
}

/** Reads a time. Returns it in UTC, with milliseconds. */
export function readTime(name: string, value: Parameter): string | undefined {
  const text = readFilter(name, value);
  if (text === undefined) return undefined;
  if (!v.is(searchTime, text)) throw invalidFilter(name, SEARCH_TIME);
  return new Date(text).toISOString();
}

function readInteger(name: string, value: Exclude<Parameter, undefined>): number {
  const number = typeof value === "string" && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw invalid(name, "one decimal integer");
  return number;
}

function invalidFilter(name: string, expected: string): ServiceError {
  return agentErrors.invalid_filter(`Invalid filter: ${name} must be ${expected}`);
}

function invalid(name: string, expected: string): ServiceError {
  return agentErrors.invalid_pagination(`Invalid pagination: ${name} must be ${expected}`);
}
