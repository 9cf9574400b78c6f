import type { ports } from "@portico/core";
import { type JsonSchema, SchemaBook } from "@portico/core/schema-book";
import { FUNCTION_GROUPS } from "../expressions/function-library.ts";

/** All kinds of nodes with the fields of `with`, as Markdown. Derived from the schemas that loading uses. */
export function nodeReference(types: ReadonlyMap<string, ports.NodeRules>): string {
  const all = [...types.values()].sort((one, other) => (one.type < other.type ? -1 : 1));
  return all.map(section).join("\n\n");
}

/** All functions of expressions with their examples, as Markdown. */
export function functionReference(): string {
  return FUNCTION_GROUPS.map(({ title, functions }) =>
    [
      `### ${title}`,
      "",
      "| function | | example |",
      "|---|---|---|",
      ...functions.map(({ usage, summary, example: [expression, value] }) =>
        row([code(usage), summary, `${code(expression)} is ${code(JSON.stringify(value))}`]),
      ),
    ].join("\n"),
  ).join("\n\n");
}

function section(rules: ports.NodeRules): string {
  const schema = new SchemaBook("#/$defs/").of(rules.type, rules.input);
  const options = (schema["anyOf"] ?? schema["oneOf"]) as readonly JsonSchema[] | undefined;
  const shapes = schema.properties || !options ? [schema] : options;
  const rows = new Map(shapes.flatMap((shape) => rowsOf(shape, rules, shapes.length > 1)));
  return [
    `### \`${rules.type}\``,
    "",
    `Repeatable after a crash: ${typeof rules.repeatable === "boolean" ? (rules.repeatable ? "yes" : "no") : "depends on what it is given"}.`,
    "",
    "| `with` | takes | |",
    "|---|---|---|",
    ...rows.values(),
  ].join("\n");
}

function rowsOf(shape: JsonSchema, rules: ports.NodeRules, isOneOfSeveral: boolean): [string, string][] {
  const required = new Set(shape.required);
  return Object.entries(shape.properties ?? {}).map(([key, value]) => {
    const schema = value as JsonSchema;
    const says = typeof schema["description"] === "string" ? schema["description"] : "";
    const must = required.has(key) && !isOneOfSeveral ? " **Required.**" : "";
    return [key, `| \`${key}\` | ${takes(schema, rules.keys?.[key])} | ${escaped(`${says}${must}`.trim())} |`];
  });
}

function takes(schema: JsonSchema, law: string | undefined): string {
  if (law === "expression") return "expression";
  if (law === "expressions") return "expressions by name";
  if (law === "graph") return "nodes";
  const values = "const" in schema ? [schema["const"]] : (schema["enum"] as readonly unknown[] | undefined);
  if (values) return values.map((each) => `\`${String(each)}\``).join(", ");
  const options = schema["anyOf"] as readonly JsonSchema[] | undefined;
  if (options) return [...new Set(options.map((option) => takes(option, law)))].join(", ");
  const words: Readonly<Record<string, string>> = {
    string: "text",
    array: "list",
    boolean: "true or false",
    integer: "whole number",
  };
  const type = typeof schema["type"] === "string" ? (words[schema["type"]] ?? schema["type"]) : "any JSON";
  return law === "verbatim" ? `${type}, literal` : type;
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|");
}

function code(text: string): string {
  return `\`${text}\``;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
