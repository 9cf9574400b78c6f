import { isRecord } from "../json-object.ts";

/** Keys and indexes from a value to one of its parts. */
export type SchemaPath = readonly (string | number)[];

/** A schema in a keyword of another schema. */
export interface Subschema {
  readonly schema: Readonly<Record<string, unknown>>;
  /** Path from the parent schema. */
  readonly path: SchemaPath;
  /** Whether it applies to the same value as its parent schema. */
  readonly isInPlace: boolean;
  readonly isReference: boolean;
  /** Whether it is only a definition for references. */
  readonly isDefinition: boolean;
}

const IN_PLACE = new Set(["$dynamicRef", "$ref", "allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"]);
const DEFINITIONS = new Set(["$defs", "definitions"]);
const REFERENCES = new Set(["$dynamicRef", "$ref"]);

/** The schemas in a schema's keywords. References by JSON pointers within the root are followed. References by `$anchor` or `$id` are not. */
export function* subschemas(schema: Readonly<Record<string, unknown>>, root: unknown): Generator<Subschema, void> {
  for (const [key, value] of Object.entries(schema)) {
    const isReference = REFERENCES.has(key);
    for (const [below, each] of isReference ? [[[], targetOf(value, root)] as const] : schemasOf(key, value)) {
      if (!isRecord(each)) continue;
      const path = [key, ...below];
      yield { schema: each, path, isInPlace: IN_PLACE.has(key), isReference, isDefinition: DEFINITIONS.has(key) };
    }
  }
}

function schemasOf(key: string, value: unknown): readonly (readonly [SchemaPath, unknown])[] {
  if (SCHEMA.has(key)) return [[[], value]];
  if (SCHEMAS.has(key) && Array.isArray(value)) return value.map((each, index) => [[index], each]);
  if (NAMED_SCHEMAS.has(key) && isRecord(value)) return Object.entries(value).map(([name, each]) => [[name], each]);
  return [];
}

function targetOf(reference: unknown, root: unknown): unknown {
  if (typeof reference !== "string" || !/^#(?:\/|$)/.test(reference)) return undefined;
  let target = root;
  for (const part of reference.split("/").slice(1)) {
    if (typeof target !== "object" || target === null) return undefined;
    const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
    target = Object.hasOwn(target, key) ? (target as Record<string, unknown>)[key] : undefined;
  }
  return target;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Keywords whose value is a schema. */
export const SCHEMA = new Set([
  ...["additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"],
  ...["unevaluatedItems", "unevaluatedProperties"],
]);
/** A list of schemas. */
export const SCHEMAS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
/** Schemas by name. */
export const NAMED_SCHEMAS = new Set(["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"]);
const OTHERS = [
  ...["$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$vocabulary"],
  ...["const", "contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description", "enum"],
  ...["examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems", "maxLength", "maxProperties"],
  ...["maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern", "readOnly"],
  ...["required", "title", "type", "uniqueItems", "writeOnly"],
];

/** Keywords of JSON Schema 2020-12. */
export const KEYWORDS: ReadonlySet<string> = new Set([...SCHEMA, ...SCHEMAS, ...NAMED_SCHEMAS, ...OTHERS]);
