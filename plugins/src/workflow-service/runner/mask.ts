const MASKED = "***";
/** Shorter ones would turn every text into stars, and hide nothing that could not be guessed. */
const SHORTEST = 4;

/** Shows a value without secrets: a copy where one was found. */
export type Mask = <T>(value: T) => T;

/** Masks these secrets wherever they stand in the texts, and names, of a JSON value, plain, or as they stand in URLs or base64. */
export function createMask(secrets: readonly string[]): Mask {
  const forms = secrets.filter(({ length }) => length >= SHORTEST).flatMap(formsOf);
  if (forms.length === 0) return (value) => value;
  // The longest first: one secret may begin another.
  const pattern = new RegExp(
    [...new Set(forms)]
      .sort((a, b) => b.length - a.length)
      .map((form) => form.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
      .join("|"),
    "g",
  );
  const mask = (value: unknown): unknown => {
    if (typeof value === "string") return value.replace(pattern, MASKED);
    if (Array.isArray(value)) return value.map(mask);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key.replace(pattern, MASKED), mask(each)]));
  };
  return mask as Mask;
}

function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  return [secret, encodeURIComponent(secret), bytes.toString("base64"), bytes.toString("base64url")];
}
