import { isRecord } from "@portico/core/contract";
import type { ports } from "@portico/core";
import { type JsonSchema, SchemaBook } from "@portico/core/schema-book";
import { nodeId, writtenDocument, writtenNode } from "./document-schema.ts";

export interface DefinitionJsonSchemaOptions {
  /** Whether only these kinds of nodes are allowed. Default: other kinds are allowed with any `with`, because plugins can add kinds. */
  readonly isClosed?: boolean;
}

type Schema = Readonly<Record<string, unknown>>;

const TEMPLATE = { $ref: "#/$defs/template" };
const EXPRESSION: Schema = { type: "string", minLength: 1, description: "CEL, bare or in `${{ }}`." };

/**
 * JSON Schema 2020-12 of definitions, for editors. It is derived from the schemas that loading uses. It does not contain checks that only
 * loading can do (names in expressions, cycles, `check` of a kind of node).
 */
export function definitionJsonSchema(
  types: ReadonlyMap<string, ports.NodeRules>,
  { isClosed = false }: DefinitionJsonSchemaOptions = {},
): Schema {
  const book = new SchemaBook("#/$defs/");
  const document = book.of("document", writtenDocument);
  const node = book.of("node", writtenNode);
  const all = [...types.values()].sort((one, other) => (one.type < other.type ? -1 : 1));
  const names = all.map(({ type }) => type);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Portico workflow definition",
    ...document,
    properties: { ...document.properties, nodes: { $ref: "#/$defs/nodes" }, onFailure: onFailureOf(document) },
    $defs: {
      ...book.shared,
      template: { type: "string", pattern: "\\$\\{\\{", description: "A text that contains `${{ CEL }}`." },
      nodes: {
        type: "object",
        description: "Nodes by id.",
        minProperties: 1,
        propertyNames: book.of("nodeId", nodeId),
        additionalProperties: { $ref: "#/$defs/node" },
      },
      node: {
        ...node,
        properties: {
          ...node.properties,
          type: { type: "string", description: "The kind of node.", ...(isClosed ? { enum: names } : { examples: names }) },
        },
        allOf: all.map((rules) => conditionOf(rules, book)),
      },
      ...Object.fromEntries(all.map((rules) => [`with.${rules.type}`, writtenWith(rules, book)])),
    },
  };
}

/** A node that starts on its own. */
function onFailureOf(document: JsonSchema): Schema {
  const { description } = (document.properties?.["onFailure"] ?? {}) as Schema;
  return { description, $ref: "#/$defs/node", not: { anyOf: [{ required: ["needs"] }, { required: ["onError"] }] } };
}

/** The requirements for `with` of one node type. */
function conditionOf(rules: ports.NodeRules, book: SchemaBook): Schema {
  const schema = book.of(`with.${rules.type}`, rules.input);
  return {
    if: { properties: { type: { const: rules.type } }, required: ["type"] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: {
      properties: { with: { $ref: `#/$defs/with.${rules.type}` } },
      ...(needsKeys(schema) && { required: ["with"] }),
    },
  };
}

/** Whether every shape of `with` has required keys. */
function needsKeys({ anyOf, oneOf, required = [] }: JsonSchema): boolean {
  const options = anyOf ?? oneOf;
  return required.length > 0 || (Array.isArray(options) && options.every((each) => needsKeys(each as JsonSchema)));
}

/** The schema of the written `with`: each value matches its schema or is a template. */
function writtenWith(rules: ports.NodeRules, book: SchemaBook): Schema {
  const shape = (schema: JsonSchema): Schema => {
    const options = schema["anyOf"] ?? schema["oneOf"];
    if (!schema.properties && Array.isArray(options)) return { anyOf: options.map((each) => shape(each as JsonSchema)) };
    const entries = Object.entries(schema.properties ?? {}).map(([key, each]) => [
      key,
      writtenKey(each as Schema, rules.keys?.[key]),
    ]);
    return { ...schema, properties: Object.fromEntries(entries) };
  };
  return shape(book.of(`with.${rules.type}`, rules.input));
}

function writtenKey(schema: Schema, law: NonNullable<ports.NodeRules["keys"]>[string] | undefined): Schema {
  const { description } = schema;
  switch (law) {
    case "verbatim":
      return schema;
    case "graph":
      return { $ref: "#/$defs/nodes", ...(description !== undefined && { description }) };
    case "expression":
      return { ...(description !== undefined && { description }), anyOf: [EXPRESSION, withTemplates(schema)] };
    case "expressions":
      return { ...schema, type: "object", minProperties: 1, additionalProperties: { anyOf: [EXPRESSION, { type: "boolean" }] } };
    default:
      return withTemplates(schema);
  }
}

/** Allow a template for each value whose schema does not already accept every text. */
function withTemplates(schema: Schema): Schema {
  if (isAnyText(schema)) return schema;
  const { description, ...rest } = schema;
  const inner: Record<string, unknown> = { ...rest };
  for (const key of ["properties", "patternProperties"]) {
    if (isRecord(rest[key]))
      inner[key] = Object.fromEntries(Object.entries(rest[key]).map(([name, each]) => [name, nested(each)]));
  }
  for (const key of ["items", "additionalProperties"]) if (isRecord(rest[key])) inner[key] = nested(rest[key]);
  // A template can fit several of the options.
  const options = rest["anyOf"] ?? rest["oneOf"];
  delete inner["oneOf"];
  const alternatives = Array.isArray(options) ? options.map(nested) : [inner];
  return { ...(description !== undefined && { description }), anyOf: [...alternatives, TEMPLATE] };
}

function nested(schema: unknown): unknown {
  return isRecord(schema) ? withTemplates(schema) : schema;
}

/** Whether a schema accepts every text, and so also every template. */
function isAnyText(schema: Schema): boolean {
  const { type, description: _description, title: _title, default: _default, ...rules } = schema;
  return (type === undefined || type === "string") && Object.keys(rules).length === 0;
}
