/** The value as an object; anything else is an empty one. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};
}

/** The value as a list; anything else is an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value as a string; anything else is "". */
export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}
