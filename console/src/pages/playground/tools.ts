import type { CodeDiagnostic, CompletionSchema } from "../../blocks/code-editor/code-editor.ts";
import type { Protocol } from "./conversation.ts";

export interface ReadTools {
  readonly tools: readonly unknown[];
  /** What is wrong with the text. */
  readonly problem?: CodeDiagnostic;
}

const parameters = {
  type: "object",
  properties: { city: { type: "string", description: "The name of the city" } },
  required: ["city"],
};

/** A tool that shows the shape of the protocol. */
export function exampleTools(protocol: Protocol): string {
  const tool = { name: "get_weather", description: "The weather in a city", input_schema: parameters };
  return toolsAs(protocol, JSON.stringify([tool]));
}

/** Reads an array of tools in the shape of the protocol. An empty text is no tools. */
export function readTools(protocol: Protocol, text: string): ReadTools {
  if (text.trim() === "") return { tools: [] };
  const value = parsed(text);
  if (value instanceof SyntaxError) return { tools: [], problem: { ...placeOf(value, text), ...problemOf("Invalid JSON") } };
  if (!Array.isArray(value)) return { tools: [], problem: { ...START, ...problemOf("Tools are an array: [ … ]") } };
  const at = value.findIndex((tool) => !isTool(protocol, tool));
  if (at < 0) return { tools: value };
  const shape =
    protocol === "messages"
      ? 'an object with "name" and "input_schema"'
      : 'an object with "type": "function" and "function", which has a "name"';
  return { tools: [], problem: { ...START, ...problemOf(`Tool ${at + 1} is not ${shape}`) } };
}

/** The same tools in the shape of the protocol. A text that is no array of tools stays as it is. */
export function toolsAs(protocol: Protocol, text: string): string {
  const value = parsed(text);
  if (!Array.isArray(value)) return text;
  return JSON.stringify(value.map(protocol === "messages" ? toMessages : toChat), null, 2);
}

/** What the editor offers while the user writes. */
export function toolsSchema(protocol: Protocol): CompletionSchema {
  const named = (name: string) => ({
    ...{ type: "object", required: ["name", name] },
    properties: {
      name: { type: "string", description: "Letters, digits, _ and -." },
      description: { type: "string", description: "What the tool does, and when to use it." },
      [name]: { type: "object", description: "A JSON Schema of the arguments." },
    },
  });
  const chat = {
    ...{ type: "object", required: ["type", "function"] },
    properties: { type: { const: "function" }, function: named("parameters") },
  };
  return { type: "array", items: protocol === "messages" ? named("input_schema") : chat };
}

const START = { line: 1, column: 1 };
const problemOf = (message: string) => ({ severity: "error", message }) as const;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return error;
  }
}

/** Some browsers tell the place in their message. */
function placeOf({ message }: SyntaxError, text: string): { readonly line: number; readonly column: number } {
  const place = /line (\d+) column (\d+)/.exec(message);
  if (place) return { line: Number(place[1]), column: Number(place[2]) };
  // The text ended too early.
  const lines = text.split("\n");
  return { line: lines.length, column: lines.at(-1)!.length + 1 };
}

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/** Tools that a provider executes itself have a `type` and no schema. */
function isTool(protocol: Protocol, tool: unknown): boolean {
  if (!isFields(tool)) return false;
  if (protocol === "messages") return typeof tool["name"] === "string" && (isFields(tool["input_schema"]) || "type" in tool);
  return typeof tool["type"] === "string" && (tool["type"] !== "function" || isNamed(tool["function"]));
}

function isNamed(value: unknown): value is Fields {
  return isFields(value) && typeof value["name"] === "string";
}

function toMessages(tool: unknown): unknown {
  if (!isFields(tool) || !isNamed(tool["function"])) return tool;
  const { name, description, parameters: schema = { type: "object" } } = tool["function"];
  return { name, ...(description !== undefined && { description }), input_schema: schema };
}

function toChat(tool: unknown): unknown {
  if (!isNamed(tool) || !isFields(tool["input_schema"])) return tool;
  const { name, description, input_schema: schema } = tool;
  return { type: "function", function: { name, ...(description !== undefined && { description }), parameters: schema } };
}
