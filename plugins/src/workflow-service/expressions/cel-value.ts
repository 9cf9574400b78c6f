import { Duration, UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { setOwn } from "./set-own.ts";

/** JSON values that were examined, and what the library gets for them. The values of expressions are never changed. */
const known = new WeakMap<object, object>();

/**
 * The JSON value for the library of expressions, which takes the type of an object from its `constructor`: a field of this name would break
 * every expression that meets the object. Such objects become maps. All other values are not copied.
 */
export function toCelValue(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const before = known.get(value);
  if (before) return before;
  const made = converted(value) as object;
  known.set(value, made);
  return made;
}

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
      return Array.isArray(value) ? listToJson(value) : structuredToJson(value);
    default:
      throw new Refused("it comes to something that JSON does not have");
  }
}

/** The fields of an object, or of the map that replaces one. */
export function fieldsOf(value: object): readonly (readonly [string, unknown])[] {
  return value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value);
}

/** Whether a value is an object of JSON, or the map that replaces one. */
export function isFields(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof Map) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The reason why a function of the language refused. The message quotes no value. */
export class Refused extends Error {
  override readonly name = "Refused";
}

function converted(value: unknown): unknown {
  if (Array.isArray(value)) return list(value);
  return isFields(value) ? record(value as Readonly<Record<string, unknown>>) : value;
}

function list(values: readonly unknown[]): readonly unknown[] {
  let made: unknown[] | undefined;
  for (let index = 0; index < values.length; index++) {
    const each = converted(values[index]);
    if (each !== values[index]) (made ??= values.slice())[index] = each;
  }
  return made ?? values;
}

function record(values: Readonly<Record<string, unknown>>): object {
  let made: Record<string, unknown> | undefined;
  for (const key of Object.keys(values)) {
    const value = values[key];
    const each = converted(value);
    if (each !== value) setOwn((made ??= { ...values }), key, each);
  }
  const all = made ?? values;
  return Object.hasOwn(values, "constructor") ? new Map(Object.entries(all)) : all;
}

function wholeNumber(value: bigint): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

function listToJson(values: readonly unknown[]): readonly unknown[] {
  let converted: unknown[] | undefined;
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    const json = toJson(value);
    if (json !== value) (converted ??= values.slice())[index] = json;
  }
  return converted ?? values;
}

function structuredToJson(value: object): unknown {
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype === Object.prototype || prototype === null) return recordToJson(value as Record<string, unknown>);
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

function recordToJson(values: Record<string, unknown>): Record<string, unknown> {
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
