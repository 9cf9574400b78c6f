import { isRecord } from "@portico/core/contract";
import type { JsonSchema } from "./definition.ts";
import { childrenOf, type SyntaxNode } from "../expressions/syntax-tree.ts";

/** Schemas of what expressions read: the parameters, and outputs of nodes by id. */
export interface KnownSchemas {
  readonly parameters: JsonSchema;
  readonly outputs: ReadonlyMap<string, JsonSchema>;
}

interface TypeProblem {
  /** Character of the expression. */
  readonly offset: number;
  readonly message: string;
}

const WORDS: Readonly<Record<string, string>> = {
  ...{ string: "a text", number: "a number", boolean: "true or false", array: "a list", object: "an object", null: "null" },
};

/** Comparisons of values of different types, which are never equal, and `||` and `&&` of values that are not true or false. */
export function comparedTypes(tree: SyntaxNode, schemas: KnownSchemas): readonly TypeProblem[] {
  const problems: TypeProblem[] = [];
  const walk = (node: SyntaxNode): void => {
    const problem = problemOf(node, schemas);
    if (problem !== undefined) problems.push({ offset: node.start, message: problem });
    for (const child of childrenOf(node)) walk(child);
  };
  walk(tree);
  return problems;
}

function problemOf(node: SyntaxNode, schemas: KnownSchemas): string | undefined {
  const [left, right] = childrenOf(node);
  if (!left || !right) return undefined;
  const [one, other] = [typesOf(left, schemas), typesOf(right, schemas)];
  if (node.op === "==" || node.op === "!=") {
    if (!one || !other || one.some((type) => other.includes(type))) return undefined;
    const result = node.op === "==" ? "false" : "true";
    return `This compares ${inWords(one)} with ${inWords(other)}, so it is always ${result}: convert one with string() or int()`;
  }
  const wrong =
    node.op === "||" || node.op === "&&" ? [one, other].find((types) => types && !types.includes("boolean")) : undefined;
  return wrong && `\`${node.op}\` takes true and false, and one side is ${inWords(wrong)}: a default is \`has(a.b) ? a.b : 'c'\``;
}

function inWords(types: readonly string[]): string {
  return types.map((type) => WORDS[type] ?? type).join(" or ");
}

/** The JSON types that a value can have. Undefined if they are not known. */
function typesOf(node: SyntaxNode, schemas: KnownSchemas): readonly string[] | undefined {
  if (node.op === "value") return literal(node.args);
  if (node.op === "list") return ["array"];
  if (node.op === "map") return ["object"];
  if (node.op === "call" || node.op === "rcall") return RESULTS[(node.args as [string])[0]];
  return typesOfSchema(schemaOf(node, schemas));
}

/** Functions whose result has always one type. */
const RESULTS: Readonly<Record<string, readonly string[]>> = {
  ...{ string: ["string"], int: ["number"], double: ["number"], size: ["number"], bool: ["boolean"], has: ["boolean"] },
  ...{ upperAscii: ["string"], lowerAscii: ["string"], trim: ["string"], contains: ["boolean"], startsWith: ["boolean"] },
};

function literal(value: unknown): readonly string[] | undefined {
  if (value === null) return ["null"];
  if (typeof value === "bigint") return ["number"];
  return ["string", "number", "boolean"].includes(typeof value) ? [typeof value] : undefined;
}

/** The schema of `parameters.a.b` or `nodes.ID.output.a`. Undefined if a step is not described. */
function schemaOf(node: SyntaxNode, { parameters, outputs }: KnownSchemas): unknown {
  const keys: string[] = [];
  let root = node;
  while (root.op === ".") {
    const [next, key] = root.args as [SyntaxNode, string];
    keys.unshift(key);
    root = next;
  }
  if (root.op !== "id") return undefined;
  if (root.args === "parameters") return keys.reduce<unknown>(property, parameters);
  const [id, field, ...below] = keys;
  if (root.args !== "nodes" || id === undefined || field !== "output") return undefined;
  return below.reduce<unknown>(property, outputs.get(id));
}

function property(schema: unknown, key: string): unknown {
  const properties = isRecord(schema) ? schema["properties"] : undefined;
  return isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
}

function typesOfSchema(schema: unknown): readonly string[] | undefined {
  if (!isRecord(schema)) return undefined;
  const written = [schema["type"]].flat();
  if (!written.every((type): type is string => typeof type === "string")) return undefined;
  return [...new Set(written.map((type) => (type === "integer" ? "number" : type)))];
}
