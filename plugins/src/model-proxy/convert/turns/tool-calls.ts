import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import { parseExactly, writeExactly } from "../exact-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { takeCacheMark, withCacheMark } from "../request/cache-mark.ts";
import { dropUnknown, isAbsent, quoteName, readObject, readString } from "../request/read-field.ts";
import { toolIdForChat, toolIdForMessages } from "../tool-ids.ts";

const TOOL_USE_FIELDS = new Set(["type", "id", "name", "input", "caller"]);
const TOOL_CALL_FIELDS = new Set(["type", "id", "function", "index"]);
const FUNCTION_FIELDS = new Set(["name", "arguments"]);

/** Converts a `tool_use` block to a tool call. Its input becomes JSON text. */
export function toolUseToChat(block: JsonObject, path: string, dropped: Dropped): JsonObject {
  if (isJsonObject(block.caller) && block.caller.type !== "direct") {
    throw new ConversionRefused(`${path}.caller`, "only the model itself can call a tool here");
  }
  dropUnknown(block, TOOL_USE_FIELDS, "messages.content.", dropped);
  const input = isAbsent(block.input) ? {} : readObject(block.input, `${path}.input`);
  return {
    id: toolIdForChat(readString(block.id, `${path}.id`)),
    type: "function",
    function: { name: readString(block.name, `${path}.name`), arguments: writeArguments(input, `${path}.input`) },
  };
}

/** Converts a tool call to a `tool_use` block. @throws ConversionRefused if its arguments are not the JSON text of an object. */
export function toolCallToMessages(value: Json, path: string, dropped: Dropped): JsonObject {
  const [call, mark] = takeCacheMark(readObject(value, path), path, dropped);
  if (!isAbsent(call.type) && call.type !== "function") {
    throw new ConversionRefused(path, `a call of type ${quoteName(call.type)} has no counterpart here`);
  }
  dropUnknown(call, TOOL_CALL_FIELDS, "messages.tool_calls.", dropped);
  const id = toolIdForMessages(readString(call.id, `${path}.id`));
  return withCacheMark(functionCallToMessages(call.function, id, `${path}.function`, dropped), mark);
}

/** Converts a function name with arguments to a `tool_use` block with this id. */
export function functionCallToMessages(value: Json | undefined, id: string, path: string, dropped: Dropped): JsonObject {
  const called = readObject(value, path);
  dropUnknown(called, FUNCTION_FIELDS, "messages.tool_calls.function.", dropped);
  const input = readArguments(called.arguments, `${path}.arguments`);
  return { type: "tool_use", id, name: readString(called.name, `${path}.name`), input };
}

function writeArguments(input: JsonObject, path: string): string {
  try {
    return writeExactly(input);
  } catch {
    // JSON.parse accepts any depth, but JSON.stringify does not.
    throw new ConversionRefused(path, "is nested too deeply");
  }
}

/** Empty or missing arguments mean a call without arguments. */
function readArguments(value: Json | undefined, path: string): JsonObject {
  if (isAbsent(value)) return {};
  const text = readString(value, path);
  if (text.trim() === "") return {};
  const input = parseArguments(text, path);
  if (!isJsonObject(input)) throw new ConversionRefused(path, "must be the JSON text of an object");
  return input;
}

function parseArguments(text: string, path: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    throw new ConversionRefused(path, "is not JSON text");
  }
}
