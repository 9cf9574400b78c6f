import type { SensitivePaths } from "../definition/sensitive-paths.ts";
import { namesIn, type Place, placesOf, textsIn, valueAt, withValuesAt } from "./json-places.ts";
import { MASKED, maskText } from "./mask.ts";
import type { SecretFinder } from "./secret-finder.ts";

/** A text as a list of literal parts and names of configured secrets. */
export type ReferringText = readonly (string | { readonly secret: string })[];

/** A masked JSON value, and the data that restores the original. */
export interface Concealed {
  readonly shown: unknown;
  /** Texts that contain configured secrets. */
  readonly references: readonly (readonly [Place, ReferringText])[];
  /** All other hidden values. */
  readonly values: readonly (readonly [Place, unknown])[];
  /** The secrets in `values`. They are masked from then on wherever these values are used. */
  readonly secrets: readonly string[];
}

/** Removes found secrets and the values at sensitive places from a JSON value. Undefined if there is nothing to remove. */
export function conceal(value: unknown, finder: SecretFinder, sensitive: SensitivePaths = []): Concealed | undefined {
  const references: [Place, ReferringText][] = [];
  const secrets = new Set<string>();
  const values: [Place, unknown][] = placesOf(value, sensitive).map((place) => [place, valueAt(value, place)]);
  for (const [, each] of values) for (const text of textsIn(each)) secrets.add(text);
  const rest = withValuesAt(
    value,
    values.map(([place]) => [place, MASKED]),
  );

  /** The current path of the walk. It is copied only if a secret is found. */
  const way: (string | number)[] = [];
  const hide = (hidden: unknown): void => {
    values.push([[...way], hidden]);
    for (const text of [...textsIn(hidden), ...namesIn(hidden)]) {
      for (const { secret } of finder.find(text)) if (secret.name === undefined) secrets.add(secret.text);
    }
  };
  const walk = (each: unknown): unknown => {
    if (typeof each === "number") {
      if (!finder.has(String(each))) return each;
      hide(each);
      return MASKED;
    }
    if (typeof each === "string") {
      if (!finder.isIn(each)) return each;
      const referring = toReferringText(each, finder);
      if (referring) references.push([[...way], referring]);
      else hide(each);
      return maskText(each, finder);
    }
    if (typeof each !== "object" || each === null) return each;
    if (!Array.isArray(each) && Object.keys(each).some((key) => finder.isIn(key))) {
      // The original value, including the values at sensitive places inside it.
      hide(valueAt(value, way));
      return MASKED;
    }
    const entries = Object.entries(each).map(([key, inner]) => {
      way.push(Array.isArray(each) ? Number(key) : key);
      const entry = [key, walk(inner)] as const;
      way.pop();
      return entry;
    });
    if (entries.every(([key, inner]) => inner === (each as Record<string, unknown>)[key])) return each;
    return Array.isArray(each) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
  };
  const shown = finder.isEmpty ? rest : walk(rest);
  return references.length + values.length > 0 ? { shown, references, values, secrets: [...secrets] } : undefined;
}

/** The text with names instead of configured secrets. Undefined if it contains other secrets, or secrets in an encoded form. */
function toReferringText(text: string, finder: SecretFinder): ReferringText | undefined {
  const parts: (string | { readonly secret: string })[] = [];
  let from = 0;
  for (const { start, end, secret, isPlain } of finder.find(text)) {
    if (secret.name === undefined || !isPlain) return undefined;
    // If several secrets begin at one position, the longest comes first. A secret inside another is covered by it.
    if (end <= from) continue;
    if (start < from) return undefined;
    if (start > from) parts.push(text.slice(from, start));
    parts.push({ secret: secret.name });
    from = end;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** Restores the original value. `secretOf` returns the configured secrets by name. */
export function uncover({ shown, references, values }: Omit<Concealed, "secrets">, secretOf: (name: string) => string): unknown {
  const texts = references.map(
    ([place, parts]) => [place, parts.map((part) => (typeof part === "string" ? part : secretOf(part.secret))).join("")] as const,
  );
  return withValuesAt(withValuesAt(shown, texts), values);
}
