import { isRecord } from "@portico/core/contract";

/** One line for each place where two values differ: `outputs.kind: expected "bug", got "question"`. */
export function jsonDifference(path: string, expected: unknown, found: unknown): readonly string[] {
  if (Array.isArray(expected) && Array.isArray(found)) {
    const length = Math.max(expected.length, found.length);
    return Array.from({ length }, (_, index) => index).flatMap((index) =>
      jsonDifference(`${path}[${index}]`, expected[index], found[index]),
    );
  }
  if (isRecord(expected) && isRecord(found)) {
    const keys = [...new Set([...Object.keys(expected), ...Object.keys(found)])];
    return keys.flatMap((key) => jsonDifference(`${path}.${key}`, own(expected, key), own(found, key)));
  }
  return Object.is(expected, found) ? [] : [`${path}: expected ${shown(expected)}, got ${shown(found)}`];
}

function own(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
