import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { takeCacheMark, withCacheMark } from "./cache-mark.ts";
import { dropUnknown, isAbsent, quoteName, readArray, readBoolean, readObject, readOptional, readString } from "./read-field.ts";

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
