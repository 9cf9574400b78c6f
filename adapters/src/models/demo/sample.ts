/** The parts of a JSON Schema that a sample is made from. Each may have any type, because schemas are untrusted. */
interface SampleSchema {
  readonly $ref?: unknown;
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: unknown;
  readonly required?: unknown;
  readonly items?: unknown;
  readonly minItems?: unknown;
  readonly minimum?: unknown;
  readonly exclusiveMinimum?: unknown;
  readonly maximum?: unknown;
  readonly anyOf?: unknown;
  readonly oneOf?: unknown;
}

interface Sampling {
  readonly root: unknown;
  readonly text: string;
  /** Remaining number of values. Nested lists would otherwise grow without limit. */
  left: number;
}

const DEEPEST = 8;
const MOST_VALUES = 1000;

/** A value that fits a JSON Schema. It is always the same, and never huge. Strings without a choice become `text`. */
export function sampleOf(schema: unknown, text: string): unknown {
  return sample(schema, { root: schema, text, left: MOST_VALUES }, 0);
}

function sample(given: unknown, sampling: Sampling, depth: number): unknown {
  sampling.left -= 1;
  const schema = resolved(given, sampling.root);
  if (!isObject(schema) || depth > DEEPEST || sampling.left < 0) return null;
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  const alternative = first(schema.anyOf) ?? first(schema.oneOf);
  if (alternative !== undefined) return sample(alternative, sampling, depth + 1);
  switch (typeOf(schema)) {
    case "object":
      return sampleObject(schema, sampling, depth + 1);
    case "array":
      return Array.from({ length: Math.max(1, Math.min(numberOf(schema.minItems) ?? 1, sampling.left)) }, () =>
        sample(schema.items ?? { type: "string" }, sampling, depth + 1),
      );
    case "number":
    case "integer":
      return sampleNumber(schema);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return sampling.text;
  }
}

function sampleObject({ properties, required }: SampleSchema, sampling: Sampling, depth: number): object {
  const known = new Map<string, unknown>(isObject(properties) ? Object.entries(properties) : []);
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [...known.keys()];
  return Object.fromEntries(names.map((name) => [name, sample(known.get(name) ?? { type: "string" }, sampling, depth)]));
}

function sampleNumber({ minimum, exclusiveMinimum, maximum }: SampleSchema): number {
  const above = numberOf(exclusiveMinimum);
  const lowest = numberOf(minimum) ?? (above === undefined ? undefined : Math.floor(above) + 1);
  return Math.ceil(lowest ?? Math.min(1, Math.floor(numberOf(maximum) ?? 1)));
}

function typeOf({ type, properties }: SampleSchema): unknown {
  return first(type) ?? type ?? (properties === undefined ? "string" : "object");
}

/** `#/$defs/Name`, which the schema generators of client libraries write for repeated parts. */
function resolved(schema: unknown, root: unknown): SampleSchema | undefined {
  if (!isObject(schema)) return undefined;
  if (typeof schema.$ref !== "string" || !schema.$ref.startsWith("#/")) return schema;
  let at: unknown = root;
  for (const name of schema.$ref.slice(2).split("/")) {
    at = isObject(at) && Object.hasOwn(at, name) ? (at as Readonly<Record<string, unknown>>)[name] : undefined;
  }
  return isObject(at) ? at : undefined;
}

function isObject(value: unknown): value is SampleSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
