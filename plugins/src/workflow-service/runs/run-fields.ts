import { hasAtMost } from "@portico/core/contract";
import { FIELD_CHARACTERS } from "../limits.ts";

/** The values of a run by which it can be found, as texts: by path, such as `customer.id`. */
export interface RunFields {
  readonly parameters?: FieldValues | undefined;
  readonly outputs?: FieldValues | undefined;
}

/** Values as texts, by path. */
export type FieldValues = Readonly<Record<string, string>>;

/**
 * The values at the declared paths: texts of at most 200 characters, numbers and booleans. `shown` is the value with its secrets masked: a
 * value that differs in it is secret, and left out. Undefined without any value.
 */
export function readFields(paths: readonly string[] | undefined, value: unknown, shown: unknown): FieldValues | undefined {
  const found = (paths ?? []).flatMap((path) => {
    const keys = path.split(".");
    const text = textOf(at(value, keys));
    return text === undefined || textOf(at(shown, keys)) !== text ? [] : [[path, text] as const];
  });
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

function at(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && hasAtMost(FIELD_CHARACTERS, value) ? value : undefined;
}
