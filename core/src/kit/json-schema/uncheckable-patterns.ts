import { type JsonSchema, patternWeight, SCHEMA_LIMITS, SCHEMA_PATTERN_LENGTH } from "./bound-schema.ts";
import { isPattern } from "./compile-schema.ts";
import { isRecord } from "../../json-object.ts";

/** A schema without the patterns that cannot be checked here, and these patterns. */
export interface CheckableSchema {
  readonly schema: JsonSchema;
  readonly unchecked: readonly string[];
}

/** Without a pattern, a value could match these although it should not, and be refused. */
const NEGATING = new Set(["else", "if", "maxContains", "not", "oneOf", "then", "unevaluatedItems", "unevaluatedProperties"]);
/** Their values are data. */
const DATA = new Set(["const", "default", "enum", "examples"]);

/**
 * Leaves out the patterns that RE2 lacks or that are too long, and the keywords that would refuse correct values without them. The schema's
 * author checks these: a server of tools checks its arguments anyway.
 */
export function withoutUncheckable(schema: JsonSchema): CheckableSchema {
  const unchecked = new Set<string>();
  let weight = 0;
  const isUnchecked = (source: string): boolean => {
    weight += patternWeight(source);
    const isBad = source.length > SCHEMA_PATTERN_LENGTH || weight > SCHEMA_LIMITS.patterns || !isPattern(source);
    if (isBad) unchecked.add(source);
    return isBad;
  };
  forEachPattern(schema, isUnchecked);
  return unchecked.size === 0
    ? { schema, unchecked: [] }
    : { schema: weaken(schema, unchecked) as JsonSchema, unchecked: [...unchecked] };
}

function forEachPattern(value: unknown, tell: (source: string) => void): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    if (key === "pattern" && typeof each === "string") tell(each);
    if (key === "patternProperties" && isRecord(each)) for (const source of Object.keys(each)) tell(source);
    if (!DATA.has(key)) forEachPattern(each, tell);
  }
}

function weaken(value: unknown, unchecked: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => weaken(each, unchecked));
  if (!isRecord(value)) return value;
  const named = isRecord(value["patternProperties"]) ? Object.keys(value["patternProperties"]) : [];
  const hasUnknownNames = named.some((source) => unchecked.has(source));
  const kept = Object.entries(value).filter(([key, each]) => {
    if (NEGATING.has(key)) return false;
    if (key === "additionalProperties") return !hasUnknownNames;
    return key !== "pattern" || typeof each !== "string" || !unchecked.has(each);
  });
  return Object.fromEntries(
    kept.map(([key, each]) => {
      if (DATA.has(key)) return [key, each];
      if (!NAMED.has(key) || !isRecord(each)) return [key, weaken(each, unchecked)];
      // The names of properties are no keywords.
      const members = Object.entries(each).filter(([name]) => key !== "patternProperties" || !unchecked.has(name));
      return [key, Object.fromEntries(members.map(([name, schema]) => [name, weaken(schema, unchecked)]))];
    }),
  );
}

const NAMED = new Set(["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]);
