import type { Path } from "./definition-problem.ts";
import { PATTERN_LENGTH, SCHEMA_EVALUATIONS, SCHEMA_PATTERNS, SCHEMA_VALUES } from "./definition-limits.ts";
import { subschemas } from "./subschemas.ts";

type Schema = Readonly<Record<string, unknown>>;

/** Returns the problem of a schema; undefined if it can be compiled. */
export type BoundSchema = (schema: Schema) => SchemaFaultPlace | undefined;

export interface SchemaFaultPlace {
  /** Within the schema. */
  readonly path: Path;
  readonly message: string;
}

const TOO_LARGE = `The JSON Schemas of a definition hold at most ${SCHEMA_VALUES} values together`;
const LONG_PATTERN = `A pattern has at most ${PATTERN_LENGTH} characters`;
const PATTERNS = `The patterns of a definition's JSON Schemas have at most ${SCHEMA_PATTERNS} characters together, repetitions counted as often as they repeat`;
const ENDLESS = "This reference leads back to where it stands: looking at a value would never end";
const FANNED_OUT = `With its references followed, a JSON Schema is at most ${SCHEMA_EVALUATIONS} schemas`;

/**
 * Finds schemas that take long to compile, or to check values against. Both block the event loop. Create one per definition, because the
 * limits count all schemas of a definition together.
 */
export function boundSchemas(): BoundSchema {
  let values = 0;
  let patterns = 0;

  function* faults(value: unknown, path: Path): Generator<SchemaFaultPlace, void> {
    if (++values > SCHEMA_VALUES) yield { path: [], message: TOO_LARGE };
    if (typeof value !== "object" || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      const written = key === "pattern" ? [each] : key === "patternProperties" ? Object.keys(each ?? {}) : [];
      for (const pattern of written) {
        if (typeof pattern !== "string") continue;
        if (pattern.length > PATTERN_LENGTH) yield { path: at, message: LONG_PATTERN };
        patterns += weightOf(pattern);
        if (patterns > SCHEMA_PATTERNS) yield { path: at, message: PATTERNS };
      }
      yield* faults(each, at);
    }
  }

  return (schema) => {
    const [fault] = faults(schema, []).take(1);
    return (
      fault ?? endless(schema) ?? (evaluationsOf(schema) > SCHEMA_EVALUATIONS ? { path: [], message: FANNED_OUT } : undefined)
    );
  };
}

/** The approximate cost of compiling a pattern. Repetitions of a group can multiply those inside it, up to the 1,000 that RE2 allows. */
function weightOf(pattern: string): number {
  let weight = pattern.length;
  for (const [, group, least, most] of pattern.matchAll(/(\)?)\{(\d+)(?:,(\d*))?\}/g)) {
    weight += group ? 1000 : Math.max(Number(least), Number(most || 0));
  }
  return weight;
}

/** The place where a schema applies itself to the same value again, without end. */
function endless(root: Schema): SchemaFaultPlace | undefined {
  const done = new Set<Schema>();
  const open = new Set<Schema>();
  const visit = (schema: Schema, path: Path): SchemaFaultPlace | undefined => {
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
  const everywhere = (schema: Schema, path: Path): SchemaFaultPlace | undefined => {
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
function evaluationsOf(root: Schema): number {
  const known = new Map<Schema, number>();
  const count = (schema: Schema): number => {
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
