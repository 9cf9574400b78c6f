import type { ServiceError } from "@portico/core";
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

function readInteger(name: string, value: Exclude<Parameter, undefined>): number {
  const number = typeof value === "string" && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw invalid(name, "one decimal integer");
  return number;
}

function invalid(name: string, expected: string): ServiceError {
  return agentErrors.invalid_pagination(`Invalid pagination: ${name} must be ${expected}`);
}
