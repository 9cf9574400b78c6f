import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { dropUnknown, isAbsent, quoteName, readArray, readBoolean, readObject, readOptional, readString } from "./read-field.ts";

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
