import { isRecord } from "../../kit/json-object.ts";

/** Bounds that Messages refuses in the schema of an answer: platform.claude.com/docs, Structured outputs. */
const BOUNDS = [
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"],
] as const;
/** Keywords with a schema or a list of schemas, and keywords with schemas by name. */
const INNER = ["items", "anyOf", "allOf", "oneOf"] as const;
const NAMED = ["properties", "$defs", "definitions"] as const;
/** Deeper schemas stay as they are. */
const DEPTH = 64;

/**
 * The schema of an answer as Messages takes it. Objects must have `additionalProperties: false` (BerriAI/litellm#35808, ax-llm/ax#458). Bounds
 * become words of the description, which the model reads.
 */
export function fitAnswerSchema(schema: unknown, depth = DEPTH): unknown {
  if (depth === 0) return schema;
  if (Array.isArray(schema)) return schema.map((each) => fitAnswerSchema(each, depth - 1));
  if (!isRecord(schema)) return schema;
  const { $schema: _dialect, ...fitted } = schema as Record<string, unknown>;
  for (const keyword of INNER) if (keyword in fitted) fitted[keyword] = fitAnswerSchema(fitted[keyword], depth - 1);
  for (const keyword of NAMED) {
    const named = fitted[keyword];
    if (!isRecord(named)) continue;
    fitted[keyword] = Object.fromEntries(Object.entries(named).map(([name, each]) => [name, fitAnswerSchema(each, depth - 1)]));
  }
  const bounds = BOUNDS.filter((bound) => bound in fitted && !(bound === "minItems" && isTaken(fitted[bound])));
  if (bounds.length > 0) {
    const words = bounds.map((bound) => `${bound}: ${String(fitted[bound])}`).join(", ");
    const { description } = fitted;
    fitted["description"] = typeof description === "string" && description !== "" ? `${description} (${words})` : words;
    for (const bound of bounds) delete fitted[bound];
  }
  if (fitted["type"] === "object" || fitted["properties"] !== undefined) fitted["additionalProperties"] = false;
  return fitted;
}

function isTaken(minItems: unknown): boolean {
  return minItems === 0 || minItems === 1;
}
