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
