/** An object whose contents are not yet checked. */
export type Fields = { readonly [key: string]: unknown };

/** Throws the sentence unless the rule holds. */
export function check(holds: boolean, breach: string): asserts holds {
  if (!holds) throw new Error(breach);
}

/** The value as an object. Throws for any other type. */
export function object(value: unknown, what: string): Fields {
  check(typeof value === "object" && value !== null && !Array.isArray(value), `${what} is not an object`);
  return value as Fields;
}

/** The object in a JSON text. Throws an error with the text's origin if the text contains no object. */
export function parseObject(text: string, what: string): Fields {
  const value = parseLoosely(text);
  check(value !== undefined, `${what} is not valid JSON`);
  return object(value, what);
}

/** The value of a JSON text, or undefined for text that is not JSON. */
export function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a value is text with something in it. */
export function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Whether a value is a whole number from 0 up. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Every number of a usage, at any depth, is a count. */
export function checkCounts(usage: Fields): void {
  for (const [key, value] of Object.entries(usage)) {
    if (typeof value === "number") check(isCount(value), `usage.${key} is not a count`);
    else if (typeof value === "object" && value !== null) checkCounts(value as Fields);
  }
}

/** The text of a field that may be missing or null. */
export function optionalText(value: unknown, what: string): string {
  check(value === undefined || value === null || typeof value === "string", `${what} is not text`);
  return value ?? "";
}
