/** A value of an indexed field. */
export type Scalar = string | number | boolean | null;

// A path is used in SQL text, between quotes, so it must not contain quotes.
const PATH = /^[A-Za-z_][A-Za-z0-9_]{0,63}(\.[A-Za-z_][A-Za-z0-9_]{0,63}){0,7}$/;

/** Whether `path` is a dot path into a record: 1-8 names of letters, digits and `_`. */
export function isFieldPath(path: string): boolean {
  return PATH.test(path);
}

/** The value at `path` in a parsed JSON record. Undefined for a missing value. Lists are not entered. */
export function readField(record: object, path: string): unknown {
  let current: unknown = record;
  for (const name of path.split(".")) {
    if (typeof current !== "object" || current === null || Array.isArray(current) || !Object.hasOwn(current, name))
      return undefined;
    current = (current as Record<string, unknown>)[name];
  }
  return current;
}

/**
 * Whether every store can keep this text unchanged: PostgreSQL does not allow U+0000, and no encoding allows an unpaired
 * surrogate.
 */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}
