import { editJsonText } from "@portico/plugins/agent-webhook/client";
import type { CompletionSchema } from "../../../blocks/code-editor/code-editor.ts";
import type { TextProblem } from "../../../blocks/text-editing/stored-text.ts";
import type { AgentDraft } from "./agent-draft.ts";

/** Keys and indexes of a value in an `agent.json`. */
export type JsonPath = readonly (string | number)[];
type Json = Readonly<Record<string, unknown>>;

/** How a value is edited. `text`: in the text alone. */
export type FieldKind = "value" | "lines" | "group" | "items" | "map" | "text";

/** The keys that are shown first. The schema has their order and everything else. */
export const MAIN_KEYS: readonly string[] = ["name", "description", "instructions", "provider", "model", "tools", "skills"];

/** Titles that say more than the key. */
const TITLES: Readonly<Record<string, string>> = {
  maxTurns: "Model calls of a turn",
  maxOutputTokens: "Tokens of an answer",
  onMaxTokens: "At the token limit",
  stop: "Stop texts",
  core: "Part of the instance",
  toolPolicy: "Approvals",
  everyMs: "Every (milliseconds)",
  jitterMs: "Jitter (milliseconds)",
};

/** `tokensPerDay`: "Tokens per day". */
export function titleOf(key: string): string {
  const words = key.replaceAll(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return TITLES[key] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** The schema of a property by which the form edits it: a switch that may also be an object with options is a switch there. */
export function shownSchema({ anyOf = [], ...schema }: CompletionSchema): CompletionSchema {
  const choice = anyOf.find(({ type }) => type === "boolean");
  return choice ? { ...schema, ...choice } : { ...schema, ...(anyOf.length > 0 && { anyOf }) };
}

/** How a property of the schema is edited, and `text` if the present value has another type. */
export function kindOf(schema: CompletionSchema, value: unknown): FieldKind {
  const { type, items, properties, additionalProperties } = schema;
  const isObject = value === undefined || isJson(value);
  const isList = value === undefined || Array.isArray(value);
  if (type === "object") {
    if (!isObject) return "text";
    if (properties) return "group";
    return typeof additionalProperties === "object" && additionalProperties.enum ? "map" : "text";
  }
  if (type === "array") {
    if (typeof items !== "object" || !isList) return "text";
    if (items.type === "object") return value === undefined || value.every(isJson) ? "items" : "text";
    return value === undefined || value.every((each) => typeof each === "string") ? "lines" : "text";
  }
  return type === undefined || (type === "boolean" && isJson(value)) ? "text" : "value";
}

/** The object of a text. Undefined if it is not a JSON object. */
export function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJson(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The text with another value at a place. `undefined` removes the value, and objects around it that are empty then. Lists are written anew; everything
 * else stays as it is written. Undefined if only a person can change it, for example where a key occurs twice.
 */
export function withValue(text: string, path: JsonPath, value: unknown): string | undefined {
  const present = parseObject(text);
  if (!present) return undefined;
  const wanted = setAt(present, path, value, true);
  const keys = path.flatMap((key) => (typeof key === "string" ? [key] : []));
  const list = path.findIndex((key) => typeof key === "number");
  let place = list < 0 ? keys : keys.slice(0, list);
  while (place.length > 1 && getAt(wanted, place.slice(0, -1)) === undefined) place = place.slice(0, -1);
  try {
    const edited = editJsonText(text, place, getAt(wanted, place));
    return JSON.stringify(parseObject(edited)) === JSON.stringify(wanted) ? edited : undefined;
  } catch {
    return undefined;
  }
}

/** The first error at a place, or inside of it. */
export function problemAt(problems: readonly TextProblem[], path: JsonPath): string | undefined {
  return problems.find(
    ({ severity, path: told }) => severity === "error" && path.every((key, at) => String(key) === segmentsOf(told)[at]),
  )?.message;
}

/** Of a JSONPath: `$.schedules[0].cron`, `$.tools["a b"]`. */
function segmentsOf(path: string): readonly string[] {
  return [...path.matchAll(/\.(\w+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/g)].map(
    ([, key, index, quoted]) => key ?? index ?? (JSON.parse(quoted!) as string),
  );
}

/** A copy with another value at a place. Objects on the way that are empty without the value are left out, unless `isKept`. */
function setAt(parent: unknown, [key, ...rest]: JsonPath, value: unknown, isKept: boolean): unknown {
  if (key === undefined) return value;
  if (typeof key === "number") {
    const list: unknown[] = Array.isArray(parent) ? [...(parent as readonly unknown[])] : [];
    if (rest.length === 0 && value === undefined) list.splice(key, 1);
    else list[key] = setAt(list[key], rest, value, true);
    return list.length > 0 ? list : undefined;
  }
  const { [key]: before, ...others } = isJson(parent) ? parent : {};
  const next = setAt(before, rest, value, false);
  if (next !== undefined) return isJson(parent) ? { ...parent, [key]: next } : { [key]: next };
  return isKept || Object.keys(others).length > 0 ? others : undefined;
}

function getAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isJson(inner) ? inner[key] : undefined), value);
}

/** The text with which a new agent begins. */
export function firstText(id: string, draft: Partial<AgentDraft> = {}): string {
  const { instructions = "", ...model } = draft;
  const first = { name: id, description: "", instructions, ...model, tools: ["SendUserMessage"] };
  return `${JSON.stringify(first, undefined, 2)}\n`;
}
