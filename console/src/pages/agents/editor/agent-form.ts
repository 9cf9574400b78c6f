import { editJsonText } from "@portico/plugins/agent-webhook/client";
import { type FormField, readValues } from "@portico/plugins/workflow-service/client";
import type { CompletionSchema } from "../../../blocks/code-editor/code-editor.ts";

type Json = Readonly<Record<string, unknown>>;

/** The fields of the form, with their labels. Other keys are edited in the text. */
const MAIN = {
  name: "Name",
  description: "Description",
  instructions: "Instructions",
  provider: "Provider",
  model: "Model",
  tools: "Tools",
} as const;
const MORE = {
  effort: "Effort",
  temperature: "Temperature",
  maxTurns: "Model calls of a turn",
  maxOutputTokens: "Tokens of an answer",
  onMaxTokens: "At the token limit",
  stop: "Stop texts",
  skills: "Skills",
} as const;

/** Written with one text in each line. */
const LISTS: ReadonlySet<string> = new Set(["tools", "stop", "skills"]);
/** Texts of several lines. */
const LONG: ReadonlySet<string> = new Set(["description", "instructions"]);
const LINE = 200;

/** What a form shows of a text. */
export interface AgentFormParts {
  readonly main: Json;
  readonly more: Json;
  /** Keys that only the text has. */
  readonly others: readonly string[];
}

/** The schemas of the form, with the values of the text. Undefined if the text is not a JSON object. */
export function formParts(
  text: string,
  { properties = {} }: CompletionSchema,
  providers: readonly string[],
): AgentFormParts | undefined {
  const present = parseObject(text);
  if (!present) return undefined;
  const schemaOf = (titles: Readonly<Record<string, string>>) => ({
    required: ["name"],
    properties: Object.fromEntries(
      Object.entries(titles).flatMap(([name, title]) => {
        const property = properties[name];
        return property ? [[name, { ...fieldOf(name, property, present[name], providers), title }]] : [];
      }),
    ),
  });
  const shown = new Set([...Object.keys(MAIN), ...Object.keys(MORE), "$schema"]);
  return { main: schemaOf(MAIN), more: schemaOf(MORE), others: Object.keys(present).filter((key) => !shown.has(key)) };
}

function fieldOf(name: string, property: CompletionSchema, value: unknown, providers: readonly string[]): Json {
  const { description } = property;
  if (LISTS.has(name)) {
    const isList = Array.isArray(value) && value.every((each) => typeof each === "string");
    const draft = isList ? value.join("\n") : value === undefined ? undefined : JSON.stringify(value);
    return { type: "string", description: `${description ?? ""} One in each line.`.trim(), default: draft };
  }
  if (name === "provider" && providers.length > 0) {
    const known = typeof value === "string" && !providers.includes(value) ? [...providers, value] : providers;
    return { type: "string", enum: known, description, default: value };
  }
  const isLine = property.type === "string" && !LONG.has(name);
  return { ...property, ...(isLine && { maxLength: LINE }), default: value };
}

/** The text with the value of a field, or what is wrong with the input. An empty field removes its key. */
export function withField(
  text: string,
  field: FormField,
  draft: string,
): { readonly text: string } | { readonly problem: string } {
  const { name } = field;
  const read = LISTS.has(name) ? { values: { [name]: linesOf(draft) } } : readValues([field], () => draft);
  if ("faults" in read) return { problem: read.faults[0]?.message ?? "This cannot be used" };
  const value = read.values[name];
  try {
    const edited = editJsonText(text, [name], value);
    if (JSON.stringify(parseObject(edited)?.[name]) === JSON.stringify(value)) return { text: edited };
  } catch {
    // Told below.
  }
  return { problem: "Change this in the text" };
}

function linesOf(draft: string): readonly string[] | undefined {
  const lines = draft
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return lines.length > 0 ? lines : undefined;
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

/** The text with which a new agent begins. */
export function firstText(id: string): string {
  return `${JSON.stringify({ name: id, description: "", instructions: "", tools: ["SendUserMessage"] }, undefined, 2)}\n`;
}
