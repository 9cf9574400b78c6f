import { hasMoreLevels } from "../parse-json.ts";
import { type SchemaPath, subschemas } from "./subschemas.ts";

/** A JSON Schema that is an object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns the problem of a schema; undefined if it can be compiled. */
export type BoundSchema = (schema: JsonSchema) => SchemaFaultPlace | undefined;

/** Why a schema is not usable, and where. */
export interface SchemaFaultPlace {
  /** Within the schema. */
  readonly path: SchemaPath;
  readonly message: string;
}

/** What the schemas of one definition may hold together. */
export const SCHEMA_LIMITS = {
  /** Maximum values, including keywords. Compiling takes time for each. */
  values: 3000,
  /** Maximum characters of all patterns. Repetitions are counted as often as they repeat. */
  patterns: 20_000,
  /** Maximum schemas of one schema if all references are followed. A few references to references can expand to billions. */
  evaluations: 10_000,
} as const;

/** Maximum characters of one pattern. */
export const SCHEMA_PATTERN_LENGTH = 1000;

/** Maximum nesting of lists and objects in a schema. Compiling recurses. */
const SCHEMA_LEVELS = 100;

const TOO_LARGE = `The JSON Schemas of a definition hold at most ${SCHEMA_LIMITS.values} values together`;
const PATTERNS = `The patterns of a definition's JSON Schemas have at most ${SCHEMA_LIMITS.patterns} characters together, repetitions counted as often as they repeat`;
const FANNED_OUT = `With its references followed, a JSON Schema is at most ${SCHEMA_LIMITS.evaluations} schemas`;
const LONG_PATTERN = `A pattern has at most ${SCHEMA_PATTERN_LENGTH} characters`;
const ENDLESS = "This reference leads back to where it stands: looking at a value would never end";
const TOO_DEEP = `A JSON Schema has at most ${SCHEMA_LEVELS} levels of lists and objects`;

/**
 * Finds schemas that take long to compile, or to check values against. Create one per definition, because the limits count all schemas of a
 * definition together.
 */
export function boundSchemas(): BoundSchema {
  let values = 0;
  let patterns = 0;

  function* faults(value: unknown, path: SchemaPath): Generator<SchemaFaultPlace, void> {
    if (++values > SCHEMA_LIMITS.values) yield { path: [], message: TOO_LARGE };
    if (typeof value !== "object" || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      for (const pattern of patternsOf(key, each)) {
        if (pattern.length > SCHEMA_PATTERN_LENGTH) yield { path: at, message: LONG_PATTERN };
        patterns += patternWeight(pattern);
        if (patterns > SCHEMA_LIMITS.patterns) yield { path: at, message: PATTERNS };
      }
      yield* faults(each, at);
    }
  }

  return (schema) => {
    if (hasMoreLevels(schema, SCHEMA_LEVELS)) return { path: [], message: TOO_DEEP };
    const [fault] = faults(schema, []).take(1);
    return (
      fault ??
      endless(schema) ??
      (evaluationsOf(schema) > SCHEMA_LIMITS.evaluations ? { path: [], message: FANNED_OUT } : undefined)
    );
  };
}

/** Whether a schema has more values or levels than can be compiled in reasonable time. */
export function isTooLarge(schema: JsonSchema, values: number): boolean {
  let left = values;
  const exceeds = (value: unknown): boolean => {
    if (--left < 0) return true;
    return typeof value === "object" && value !== null && Object.values(value).some(exceeds);
  };
  return hasMoreLevels(schema, SCHEMA_LEVELS) || exceeds(schema);
}

/**
 * The work that a schema causes for each character of a value, at most: its values, and its patterns. Infinite with references, which can lead
 * back.
 */
export function costOf(schema: JsonSchema): number {
  let cost = 0;
  const add = (value: unknown): void => {
    cost++;
    if (typeof value !== "object" || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      if (REFERENCES.has(key)) cost = Infinity;
      for (const pattern of patternsOf(key, each)) cost += patternWeight(pattern);
      add(each);
    }
  };
  add(schema);
  return cost;
}

const REFERENCES = new Set(["$dynamicRef", "$recursiveRef", "$ref"]);

function patternsOf(key: string, value: unknown): readonly string[] {
  if (key === "pattern") return typeof value === "string" ? [value] : [];
  return key === "patternProperties" ? Object.keys(value ?? {}) : [];
}

/** The approximate cost of compiling a pattern. Repetitions of a group can multiply those inside it, up to the 1,000 that RE2 allows. */
export function patternWeight(pattern: string): number {
  let weight = pattern.length;
  for (const [, group, least, most] of pattern.matchAll(/(\)?)\{(\d+)(?:,(\d*))?\}/g)) {
    weight += group ? 1000 : Math.max(Number(least), Number(most || 0));
  }
  return weight;
}

/** The place where a schema applies itself to the same value again, without end. */
function endless(root: JsonSchema): SchemaFaultPlace | undefined {
  const done = new Set<JsonSchema>();
  const open = new Set<JsonSchema>();
  const visit = (schema: JsonSchema, path: SchemaPath): SchemaFaultPlace | undefined => {
    if (open.has(schema)) return { path, message: ENDLESS };
    if (done.has(schema)) return undefined;
    done.add(schema);
    open.add(schema);
    for (const { schema: next, path: below, isInPlace } of subschemas(schema, root)) {
      const fault = isInPlace ? visit(next, [...path, ...below]) : undefined;
      if (fault) return fault;
    }
    open.delete(schema);
    return undefined;
  };
  const everywhere = (schema: JsonSchema, path: SchemaPath): SchemaFaultPlace | undefined => {
    const fault = visit(schema, path);
    if (fault) return fault;
    for (const { schema: next, path: below, isReference } of subschemas(schema, root)) {
      const found = isReference ? undefined : everywhere(next, [...path, ...below]);
      if (found) return found;
    }
    return undefined;
  };
  return everywhere(root, []);
}

/** The number of schemas if all references are followed. A recursive schema counts once, because its recursion ends with the value. */
function evaluationsOf(root: JsonSchema): number {
  const known = new Map<JsonSchema, number>();
  const count = (schema: JsonSchema): number => {
    const before = known.get(schema);
    if (before !== undefined) return before;
    known.set(schema, 1);
    let sum = 1;
    for (const { schema: next, isDefinition } of subschemas(schema, root)) if (!isDefinition) sum += count(next);
    known.set(schema, sum);
    return sum;
  };
  return count(root);
}
