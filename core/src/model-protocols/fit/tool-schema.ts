import { isRecord } from "../../kit/json-object.ts";
import { changed, type JsonRecord } from "./fitted-request.ts";

const CHOICES = ["anyOf", "oneOf", "allOf"] as const;
const TYPES: ReadonlySet<unknown> = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
/** Keywords with a schema or a list of schemas, and keywords with schemas by name. */
const INNER: ReadonlySet<string> = new Set([
  ...CHOICES,
  ...["items", "prefixItems", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"],
]);
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
/** Deeper schemas stay as they are. */
const DEPTH = 64;

/**
 * The schema of a tool as vendors accept it. One schema that a vendor refuses makes it refuse the whole request, with all tools. The server of
 * the tool checks its arguments, so keywords may be left out.
 */
export function fitToolSchema(schema: unknown): unknown {
  const fitted = fitSchema(withoutTopLevelChoice(schema), DEPTH);
  // "object schema missing properties": spring-projects/spring-ai#4776, langchain-ai/langchain-mcp-adapters#137.
  if (!isRecord(fitted) || fitted["type"] !== "object" || isRecord(fitted["properties"])) return fitted;
  return { ...fitted, properties: {} };
}

/**
 * Vendors refuse a whole request if the schema of a tool has a choice at its top (makenotion/notion-mcp-server#340). The properties of all
 * branches stay, as the model reads them. What is required stays if each branch requires it.
 */
function withoutTopLevelChoice(schema: unknown): unknown {
  if (!isRecord(schema) || !CHOICES.some((key) => key in schema)) return schema;
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const properties: Record<string, unknown> = Object.create(null);
  const required = new Set(textsOf(rest["required"]));
  for (const branches of [anyOf, oneOf, allOf]) {
    const objects = Array.isArray(branches) ? branches.filter(isRecord) : [];
    for (const { properties: own } of objects) if (isRecord(own)) Object.assign(properties, own);
    const lists = objects.map((branch) => textsOf(branch["required"]));
    const shared =
      branches === allOf ? lists.flat() : (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)));
    for (const name of shared) required.add(name);
  }
  Object.assign(properties, isRecord(rest["properties"]) ? rest["properties"] : {});
  return { ...rest, type: "object", properties: { ...properties }, ...(required.size > 0 && { required: [...required] }) };
}

function fitSchema(schema: unknown, depth: number): unknown {
  if (depth === 0) return schema;
  if (Array.isArray(schema)) return kept(schema, (each) => fitSchema(each, depth - 1));
  if (!isRecord(schema)) return schema;
  const { $schema: _dialect, patternProperties, ...rest } = schema;
  const fitted: Record<string, unknown> = "$schema" in schema || patternProperties !== undefined ? rest : { ...schema };
  for (const [keyword, value] of Object.entries(fitted)) {
    if (INNER.has(keyword)) fitted[keyword] = fitSchema(value, depth - 1);
    else if (NAMED.has(keyword) && isRecord(value)) fitted[keyword] = fitEach(value, depth - 1);
  }
  // "JSON schema is invalid" for some patterns: openclaw/openclaw#29416. Their names are free then, and their values are not described.
  if (patternProperties !== undefined && fitted["additionalProperties"] === false) delete fitted["additionalProperties"];
  fitOlderDrafts(fitted);
  const { type } = fitted;
  const isArray = type === "array" || (Array.isArray(type) && type.includes("array"));
  // "array schema missing items": ruvnet/ruflo#1294, mark3labs/mcphost#35.
  if (isArray && fitted["items"] === undefined && fitted["prefixItems"] === undefined) fitted["items"] = {};
  return sameEntries(schema, fitted) ? schema : fitted;
}

function fitEach(schemas: JsonRecord, depth: number): JsonRecord {
  return changed(schemas, Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, fitSchema(schema, depth)])));
}

/** "JSON schema is invalid. It must match JSON Schema draft 2020-12": tuples and flags of older drafts (kintone/mcp-server#553), unknown types. */
function fitOlderDrafts(fitted: Record<string, unknown>): void {
  const { items, required, type } = fitted;
  if (Array.isArray(items)) {
    fitted["items"] = items.length > 1 ? { anyOf: items } : (items[0] ?? {});
    delete fitted["additionalItems"];
  }
  if (required !== undefined && !Array.isArray(required)) delete fitted["required"];
  if (typeof type === "string" && !TYPES.has(type)) delete fitted["type"];
  for (const [flag, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (typeof fitted[flag] !== "boolean") continue;
    if (fitted[flag] && typeof fitted[bound] === "number") {
      fitted[flag] = fitted[bound];
      delete fitted[bound];
    } else delete fitted[flag];
  }
}

/**
 * Kimi: "when using anyOf, type should be defined in anyOf items instead of the parent schema" (MoonshotAI/kimi-code#2661,
 * openclaw/openclaw#113130). The type of a schema with a choice moves into the branches that have none.
 */
export function withTypedBranches(schema: unknown, depth = DEPTH): unknown {
  if (depth === 0) return schema;
  if (Array.isArray(schema)) return schema.map((each) => withTypedBranches(each, depth - 1));
  if (!isRecord(schema)) return schema;
  const typed: Record<string, unknown> = { ...schema };
  for (const [keyword, value] of Object.entries(typed)) {
    if (INNER.has(keyword)) typed[keyword] = withTypedBranches(value, depth - 1);
    else if (NAMED.has(keyword) && isRecord(value))
      typed[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, withTypedBranches(each, depth - 1)]),
      );
  }
  const { type } = typed;
  if (type === undefined || !CHOICES.some((key) => Array.isArray(typed[key]))) return typed;
  delete typed["type"];
  for (const key of CHOICES) {
    const branches = typed[key];
    if (!Array.isArray(branches)) continue;
    typed[key] = branches.map((branch: unknown) =>
      isRecord(branch) && branch["type"] === undefined && branch["$ref"] === undefined ? { ...branch, type } : branch,
    );
  }
  return typed;
}

function kept(list: readonly unknown[], fit: (each: unknown) => unknown): readonly unknown[] {
  const fitted = list.map(fit);
  return fitted.every((each, at) => each === list[at]) ? list : fitted;
}

function sameEntries(first: JsonRecord, second: JsonRecord): boolean {
  const keys = Object.keys(second);
  return keys.length === Object.keys(first).length && keys.every((key) => first[key] === second[key]);
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
