import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { takeCacheMark, withCacheMark } from "./cache-mark.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readBoolean,
  readObject,
  readOptional,
  readString,
} from "./fields.ts";

const MESSAGES_TOOL_FIELDS = new Set(["type", "name", "description", "input_schema", "strict", "allowed_callers"]);
const CHAT_TOOL_FIELDS = new Set(["type", "function"]);
const FUNCTION_FIELDS = new Set(["name", "description", "parameters", "strict"]);

/**
 * Converts custom tools of Messages to function tools.
 * @throws ConversionRefused with the name of a tool that the provider itself runs (web search, code execution …), or whose
 * schema only the provider's models know (bash, text editor, computer …).
 */
export function toolsToChat(body: JsonObject, dropped: Dropped): readonly JsonObject[] {
  const tools = readOptional(body.tools, "tools", readArray) ?? [];
  return tools.map((tool, index) => toolToChat(readObject(tool, `tools.${index}`), `tools.${index}`, dropped));
}

/**
 * Converts function tools, and then legacy `functions`, to custom tools of Messages.
 * @throws ConversionRefused with the name of a tool of any other type.
 */
export function toolsToMessages(body: JsonObject, dropped: Dropped): readonly JsonObject[] {
  const tools = (readOptional(body.tools, "tools", readArray) ?? []).map((value, index) => {
    const path = `tools.${index}`;
    const [tool, mark] = takeCacheMark(readObject(value, path), path, dropped);
    if (!isAbsent(tool.type) && tool.type !== "function") refuseChatTool(tool, path);
    dropUnknown(tool, CHAT_TOOL_FIELDS, "tools.", dropped);
    const converted = functionToMessages(
      readObject(tool.function, `${path}.function`),
      `${path}.function`,
      "tools.function.",
      dropped,
    );
    return withCacheMark(converted, mark);
  });
  const functions = (readOptional(body.functions, "functions", readArray) ?? []).map((value, index) =>
    functionToMessages(readObject(value, `functions.${index}`), `functions.${index}`, "functions.", dropped),
  );
  return [...tools, ...functions];
}

function toolToChat(tool: JsonObject, path: string, dropped: Dropped): JsonObject {
  if (!isAbsent(tool.type) && tool.type !== "custom") {
    const name = isAbsent(tool.name) ? "" : `${quoteName(tool.name)} of type `;
    throw new ConversionRefused(path, `the tool ${name}${quoteName(tool.type)} exists at its own provider only`);
  }
  const callers = readOptional(tool.allowed_callers, `${path}.allowed_callers`, readArray);
  if (callers && !callers.includes("direct")) {
    throw new ConversionRefused(`${path}.allowed_callers`, "only the model itself can call a tool here");
  }
  dropUnknown(tool, MESSAGES_TOOL_FIELDS, "tools.", dropped);
  const converted: JsonObjectDraft = { name: readName(tool.name, `${path}.name`) };
  const description = readOptional(tool.description, `${path}.description`, readString);
  if (description !== undefined) converted.description = description;
  converted.parameters = readObject(tool.input_schema, `${path}.input_schema`);
  const strict = readOptional(tool.strict, `${path}.strict`, readBoolean);
  if (strict !== undefined) converted.strict = strict;
  return { type: "function", function: converted };
}

function functionToMessages(marked: JsonObject, path: string, prefix: string, dropped: Dropped): JsonObject {
  const [definition, mark] = takeCacheMark(marked, path, dropped);
  dropUnknown(definition, FUNCTION_FIELDS, prefix, dropped);
  const converted: JsonObjectDraft = { name: readName(definition.name, `${path}.name`) };
  const description = readOptional(definition.description, `${path}.description`, readString);
  if (description !== undefined) converted.description = description;
  converted.input_schema = schemaForMessages(definition.parameters, `${path}.parameters`);
  const strict = readOptional(definition.strict, `${path}.strict`, readBoolean);
  if (strict !== undefined) converted.strict = strict;
  return withCacheMark(converted, mark);
}

/** Messages requires the type `object`. In Chat Completions, a function without parameters needs no schema. */
function schemaForMessages(value: Json | undefined, path: string): JsonObject {
  const schema = readOptional(value, path, readObject);
  if (!schema) return { type: "object", properties: {} };
  if (schema.type === "object") return schema;
  if (isAbsent(schema.type)) return { ...schema, type: "object" };
  throw new ConversionRefused(`${path}.type`, 'must be "object"');
}

function refuseChatTool(tool: JsonObject, path: string): never {
  const own = tool[typeof tool.type === "string" ? tool.type : ""];
  const name = typeof own === "object" && own !== null && "name" in own ? `${quoteName(own.name)} of type ` : "";
  throw new ConversionRefused(path, `the tool ${name}${quoteName(tool.type)} exists at its own provider only`);
}

function readName(value: Json | undefined, path: string): string {
  const name = readString(value, path);
  if (name === "") throw new ConversionRefused(path, "must not be empty");
  return name;
}

const CHOICE_FIELDS = new Set(["type", "name", "disable_parallel_tool_use"]);

/**
 * `tool_choice` with its switch for parallel calls becomes `tool_choice` and `parallel_tool_calls`. `tools` are already
 * converted.
 */
export function toolChoiceToChat(body: JsonObject, chat: JsonObjectDraft, tools: readonly JsonObject[], dropped: Dropped): void {
  const choice = readOptional(body.tool_choice, "tool_choice", readObject);
  if (choice) dropUnknown(choice, CHOICE_FIELDS, "tool_choice.", dropped);
  const converted = choice && choiceToChat(choice);
  const single = readOptional(choice?.disable_parallel_tool_use, "tool_choice.disable_parallel_tool_use", readBoolean);
  if (tools.length === 0) {
    if (converted !== undefined && converted !== "auto" && converted !== "none") refuseForced("tool_choice");
    return;
  }
  chat.tools = tools;
  if (converted !== undefined) chat.tool_choice = converted;
  if (single) chat.parallel_tool_calls = false;
}

/**
 * `tool_choice` (or the legacy `function_call`) and `parallel_tool_calls` become `tool_choice`. With `allowed_tools`, other tools are
 * left out of the request. Callers of legacy `functions` accept only one call at a time, so parallel calls are switched off for
 * them.
 */
export function toolChoiceToMessages(body: JsonObject, messages: JsonObjectDraft, tools: readonly JsonObject[]): void {
  const field = isAbsent(body.tool_choice) && !isAbsent(body.function_call) ? "function_call" : "tool_choice";
  const { choice, allowed } = readChatChoice(body[field], field);
  const parallel = readOptional(body.parallel_tool_calls, "parallel_tool_calls", readBoolean);
  if (tools.length === 0) {
    if (choice !== undefined && choice.type !== "auto" && choice.type !== "none") refuseForced(field);
    return;
  }
  messages.tools = allowed ? filterAllowed(tools, allowed) : tools;
  const single = parallel === false || (isAbsent(body.tools) && !isAbsent(body.functions));
  if (!single || choice?.type === "none") {
    if (choice) messages.tool_choice = choice;
  } else {
    messages.tool_choice = { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
  }
}

function choiceToChat(choice: JsonObject): Json {
  switch (choice.type) {
    case "auto":
    case "none":
      return choice.type;
    case "any":
      return "required";
    case "tool":
      return { type: "function", function: { name: readString(choice.name, "tool_choice.name") } };
    default:
      throw new ConversionRefused("tool_choice.type", `${quoteName(choice.type)} has no counterpart here`);
  }
}

interface ChatChoice {
  readonly choice?: JsonObject;
  readonly allowed?: ReadonlySet<Json | undefined>;
}

function readChatChoice(value: Json | undefined, field: string): ChatChoice {
  if (isAbsent(value)) return {};
  if (value === "auto" || value === "none") return { choice: { type: value } };
  if (value === "required") return { choice: { type: "any" } };
  if (typeof value === "string") throw new ConversionRefused(field, `${quoteName(value)} has no counterpart here`);
  const object = readObject(value, field);
  if (field === "function_call") return { choice: { type: "tool", name: readString(object.name, "function_call.name") } };
  if (object.type === "allowed_tools") return readAllowedTools(readObject(object.allowed_tools, "tool_choice.allowed_tools"));
  if (object.type !== "function")
    throw new ConversionRefused("tool_choice.type", `${quoteName(object.type)} has no counterpart here`);
  const named = readObject(object.function, "tool_choice.function");
  return { choice: { type: "tool", name: readString(named.name, "tool_choice.function.name") } };
}

function readAllowedTools(config: JsonObject): ChatChoice {
  const path = "tool_choice.allowed_tools";
  if (config.mode !== "auto" && config.mode !== "required") {
    throw new ConversionRefused(`${path}.mode`, 'must be "auto" or "required"');
  }
  const allowed = readArray(config.tools, `${path}.tools`).map((value, index) => {
    const tool = readObject(value, `${path}.tools.${index}`);
    const named = readObject(tool.function, `${path}.tools.${index}.function`);
    return readString(named.name, `${path}.tools.${index}.function.name`);
  });
  if (allowed.length === 0) throw new ConversionRefused(`${path}.tools`, "must name a tool");
  return { choice: { type: config.mode === "auto" ? "auto" : "any" }, allowed: new Set(allowed) };
}

function filterAllowed(tools: readonly JsonObject[], allowed: ReadonlySet<Json | undefined>): readonly JsonObject[] {
  const kept = tools.filter((tool) => allowed.has(tool.name));
  const known = new Set(kept.map((tool) => tool.name));
  if (known.size < allowed.size)
    throw new ConversionRefused("tool_choice.allowed_tools.tools", "names a tool that is not in tools");
  return kept;
}

/** Without tools both protocols refuse a choice. A choice that leaves the decision to the model has no effect and is left out. */
function refuseForced(field: string): never {
  throw new ConversionRefused(field, "demands a tool, but there are no tools");
}
