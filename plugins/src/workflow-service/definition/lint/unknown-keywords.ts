import { isRecord } from "../is-record.ts";
import type { Path } from "../definition-problem.ts";
import { KEYWORDS, NAMED_SCHEMAS, SCHEMA, SCHEMAS } from "../schema-keywords.ts";

/** Where a JSON Schema has keywords that mean nothing: they are ignored without a word. Names with `x-` are an author's own. */
export function* unknownKeywords(schema: unknown, path: Path): Generator<Path, void> {
  if (!isRecord(schema)) return;
  for (const [key, value] of Object.entries(schema)) {
    const at = [...path, key];
    if (SCHEMA.has(key)) yield* unknownKeywords(value, at);
    else if (SCHEMAS.has(key)) {
      for (const [index, each] of (Array.isArray(value) ? value : []).entries()) yield* unknownKeywords(each, [...at, index]);
    } else if (NAMED_SCHEMAS.has(key)) {
      for (const [name, each] of isRecord(value) ? Object.entries(value) : []) yield* unknownKeywords(each, [...at, name]);
    } else if (!KEYWORDS.has(key) && !key.startsWith("x-")) yield at;
  }
}
