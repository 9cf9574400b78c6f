import { isRecord } from "@portico/core/contract";
import { NAMED_SCHEMAS, SCHEMA, SCHEMAS } from "@portico/core/kit";
import type { Path } from "../definition-problem.ts";

export interface WrittenKeyword {
  readonly key: string;
  readonly value: unknown;
  readonly path: Path;
}

/** The keywords in a JSON Schema that contain no schemas, also those of the schemas inside it. */
export function* writtenKeywords(schema: unknown, path: Path): Generator<WrittenKeyword, void> {
  if (!isRecord(schema)) return;
  for (const [key, value] of Object.entries(schema)) {
    const at = [...path, key];
    if (SCHEMA.has(key)) yield* writtenKeywords(value, at);
    else if (SCHEMAS.has(key)) {
      for (const [index, each] of (Array.isArray(value) ? value : []).entries()) yield* writtenKeywords(each, [...at, index]);
    } else if (NAMED_SCHEMAS.has(key)) {
      for (const [name, each] of isRecord(value) ? Object.entries(value) : []) yield* writtenKeywords(each, [...at, name]);
    } else yield { key, value, path: at };
  }
}
