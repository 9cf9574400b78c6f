import { isRecord } from "../is-record.ts";
import type { Path } from "../definition-problem.ts";
import { KEYWORDS, NAMED_SCHEMAS, SCHEMA, SCHEMAS } from "../schema-keywords.ts";

/** Places of unknown keywords in a JSON Schema, which validators silently ignore. Names with `x-` are extensions and allowed. */
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
