import { isRecord } from "../../kit/json-object.ts";
import type { JsonRecord } from "./fitted-request.ts";

/** The members of Google's `Schema`: ai.google.dev/api/caching#Schema. Others: "Unknown name …: Cannot find field". */
const KEPT: ReadonlySet<string> = new Set([
  ...["type", "title", "description", "nullable", "enum", "default", "example", "format", "pattern"],
  ...["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
  ...["items", "properties", "required", "anyOf"],
]);
const FORMATS: ReadonlySet<unknown> = new Set(["enum", "date-time", "float", "double", "int32", "int64"]);
/** Schemas may refer to themselves. Deeper ones are any value. */
const DEPTH = 16;
/** Nor may references to references make a schema of any size. Further schemas are any value. */
const MOST_SCHEMAS = 5_000;

/**
 * A schema in the subset of OpenAPI that Gemini takes: bounds that exclude their value (Wei-Shaw/sub2api#5506), constants
 * (zed-extensions/mcp-server-brave-search#12), further properties (nanbingxyz/5ire#42) and references become what the subset has, or are left out.
 */
export function googleSchema(schema: unknown): unknown {
  return isRecord(schema) ? subsetOf(schema, { definitions: definitionsOf(schema), left: MOST_SCHEMAS }, DEPTH) : schema;
}

interface Whole {
  readonly definitions: JsonRecord;
  /** How many more schemas may be read. */
  left: number;
}

function definitionsOf({ $defs, definitions }: JsonRecord): JsonRecord {
  return { ...(isRecord(definitions) ? definitions : {}), ...(isRecord($defs) ? $defs : {}) };
}

function subsetOf(schema: unknown, root: Whole, depth: number): JsonRecord {
  if (!isRecord(schema) || root.left-- <= 0 || depth === 0) return {};
  const { definitions } = root;
  const named = /^#\/(?:\$defs|definitions)\/([^/]{1,128})$/.exec(String(schema["$ref"] ?? ""))?.[1];
  const whole = named !== undefined && isRecord(definitions[named]) ? { ...definitions[named], ...schema } : schema;
  const inner = (each: unknown) => subsetOf(each, root, depth - 1);
  // What follows would be any value, too.
  const within = <T>(list: readonly T[]) => list.slice(0, Math.max(root.left, 0));
  const fitted: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(whole)) if (KEPT.has(key)) fitted[key] = value;
  const choice = [whole["anyOf"], whole["oneOf"], whole["allOf"]].find(Array.isArray);
  if (choice) fitted["anyOf"] = within(choice).map(inner);
  if (isRecord(whole["properties"]))
    fitted["properties"] = Object.fromEntries(
      within(Object.entries(whole["properties"])).map(([name, each]) => [name, inner(each)]),
    );
  if (whole["items"] !== undefined) fitted["items"] = typed(inner(whole["items"]));
  fitType(fitted, whole["type"]);
  fitValues(fitted, whole);
  return fitted;
}

/** "items: missing field". */
function typed(items: JsonRecord): JsonRecord {
  return items["type"] === undefined && items["anyOf"] === undefined ? { ...items, type: "string" } : items;
}

/** A list of types has no counterpart but `nullable` and `anyOf`. */
function fitType(fitted: Record<string, unknown>, type: unknown): void {
  if (!Array.isArray(type)) return;
  const types = type.filter((each) => each !== "null");
  if (types.length < type.length) fitted["nullable"] = true;
  delete fitted["type"];
  if (types.length === 1) fitted["type"] = types[0];
  else if (fitted["anyOf"] === undefined) fitted["anyOf"] = types.map((each) => ({ type: each }));
}

function fitValues(
  fitted: Record<string, unknown>,
  { const: constant, exclusiveMinimum: above, exclusiveMaximum: below }: JsonRecord,
): void {
  const step = fitted["type"] === "integer" ? 1 : 0;
  if (typeof above === "number") fitted["minimum"] ??= above + step;
  if (typeof below === "number") fitted["maximum"] ??= below - step;
  if (constant !== undefined) fitted["enum"] = [constant];
  const values = fitted["enum"];
  if (Array.isArray(values)) {
    // Only texts can be listed, and no empty one.
    const texts = values.filter((value) => typeof value === "string" && value !== "");
    if (texts.length > 0) Object.assign(fitted, { enum: texts, type: fitted["type"] ?? "string" });
    if (texts.length === 0 || fitted["type"] !== "string") delete fitted["enum"];
  }
  if (fitted["format"] !== undefined && !FORMATS.has(fitted["format"])) delete fitted["format"];
}
