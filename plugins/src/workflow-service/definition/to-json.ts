import { Duration, UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { Refused } from "./refused.ts";
import { setOwn } from "./set-own.ts";

/**
 * The result of an expression as JSON. Integers that JSON cannot represent exactly become texts, timestamps become ISO 8601, and durations
 * become `1.5s`. JSON values are not copied. Throws Refused for values that JSON cannot represent.
 */
export function toJson(value: unknown): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (Number.isFinite(value)) return value;
      throw new Refused("it comes to a number that JSON does not have");
    case "bigint":
      return wholeNumber(value);
    case "undefined":
      return null;
    case "object":
      if (value === null) return null;
      return Array.isArray(value) ? list(value) : structured(value);
    default:
      throw new Refused("it comes to something that JSON does not have");
  }
}

function wholeNumber(value: bigint): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

function list(values: readonly unknown[]): readonly unknown[] {
  let converted: unknown[] | undefined;
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    const json = toJson(value);
    if (json !== value) (converted ??= values.slice())[index] = json;
  }
  return converted ?? values;
}

function structured(value: object): unknown {
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype === Object.prototype || prototype === null) return record(value as Record<string, unknown>);
  if (value instanceof Map) return ofMap(value as ReadonlyMap<string, unknown>);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Duration) return `${value.valueOf() / 1000}s`;
  if (value instanceof UnsignedInt) return wholeNumber(value.valueOf());
  throw new Refused("it comes to bytes or a type, which JSON does not have");
}

/** The object that `toCelValue` replaced by a map. */
function ofMap(values: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, value] of values) setOwn(made, key, toJson(value));
  return made;
}

function record(values: Record<string, unknown>): Record<string, unknown> {
  let converted: Record<string, unknown> | undefined;
  for (const key of Object.keys(values)) {
    const value = values[key];
    const json = toJson(value);
    if (json === value) continue;
    converted ??= { ...values };
    setOwn(converted, key, json);
  }
  return converted ?? values;
}
