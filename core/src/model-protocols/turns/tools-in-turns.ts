import { isBlank } from "../../kit/text.ts";
import { isJsonObject, type Json, type JsonObject, type JsonObjectDraft, parseExactly, writeExactly } from "../json.ts";
import { takeCacheMark, withCacheMark } from "../request/cache-mark.ts";
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
} from "../request/fields.ts";
import { readSignedToolId, toolIdForChat, toolIdForMessages } from "../tool-ids.ts";
import { documentToChat, imageToChat, imageToMessages, searchResultToChat } from "./media-parts.ts";
import { BLOCK_SEPARATOR, chatContent, markedText, readText } from "./text-parts.ts";
import { TOOL_ERROR_MARK } from "./tool-error-mark.ts";

const TOOL_USE_FIELDS = new Set(["type", "id", "name", "input", "caller"]);
const TOOL_CALL_FIELDS = new Set(["type", "id", "function", "index"]);
const FUNCTION_FIELDS = new Set(["name", "arguments"]);

/** Converts a `tool_use` block to a tool call. Its input becomes JSON text. `takesSignature`: the provider needs its signature back. */
export function toolUseToChat(block: JsonObject, path: string, takesSignature: boolean, dropped: Dropped): JsonObject {
  if (isJsonObject(block.caller) && block.caller.type !== "direct") {
    throw new ConversionRefused(`${path}.caller`, "only the model itself can call a tool here");
  }
  dropUnknown(block, TOOL_USE_FIELDS, "messages.content.", dropped);
  const input = isAbsent(block.input) ? {} : readObject(block.input, `${path}.input`);
  const { id, signature } = readSignedToolId(readString(block.id, `${path}.id`));
  return {
    id: toolIdForChat(id),
    ...(takesSignature && signature !== undefined && { extra_content: { google: { thought_signature: signature } } }),
    type: "function",
    function: { name: readString(block.name, `${path}.name`), arguments: writeArguments(input, `${path}.input`) },
  };
}

/** Converts a tool call to a `tool_use` block. */
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

/**
 * Empty or missing arguments mean a call without arguments. Some servers write the object itself. A text that is not the JSON of an object stays a
 * text: a model wrote it, or its limit cut it, and a refusal would end the conversation (router-for-me/CLIProxyAPI#2001,
 * esengine/DeepSeek-Reasonix#9566).
 */
function readArguments(value: Json | undefined, path: string): JsonObject {
  if (isAbsent(value)) return {};
  if (isJsonObject(value)) return value;
  const text = readString(value, path);
  if (text.trim() === "") return {};
  const input = parseArguments(text);
  return isJsonObject(input) ? input : { arguments: text };
}

function parseArguments(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

export const TOOL_RESULT_FIELDS = new Set(["type", "tool_use_id", "content", "is_error"]);

export interface ChatToolResult {
  readonly message: JsonObject;
  /**
   * Parts that a tool message cannot contain, for the user message that follows. A line before each part names its
   * result.
   */
  readonly attachments: readonly JsonObject[];
}

/** Converts a `tool_result` block to a tool message. Its images and files go into `attachments`. */
export function toolResultToChat(block: JsonObject, path: string, dropped: Dropped): ChatToolResult {
  dropUnknown(block, TOOL_RESULT_FIELDS, "messages.content.", dropped);
  const id = toolIdForChat(readSignedToolId(readString(block.tool_use_id, `${path}.tool_use_id`)).id);
  const failed = readOptional(block.is_error, `${path}.is_error`, readBoolean);
  const texts: string[] = [];
  const attachments: JsonObject[] = [];
  for (const part of resultParts(block.content, `${path}.content`, dropped)) {
    if (part.type === "text") {
      if (part.text !== "") texts.push(String(part.text));
      continue;
    }
    const number = attachments.length / 2 + 1;
    texts.push(`[attachment ${number}: in the next user message]`);
    attachments.push({ type: "text", text: `[attachment ${number} of the result of tool call ${id}]` }, part);
  }
  const content = texts.join(BLOCK_SEPARATOR);
  const marked = failed ? [TOOL_ERROR_MARK, ...(content === "" ? [] : [content])].join(" ") : content;
  return { message: { role: "tool", tool_call_id: id, content: chatContent([markedText(marked, block, dropped)]) }, attachments };
}

/**
 * Converts the content of a tool message to a `tool_result` block. The protocol allows only text there. Some servers also accept images,
 * which Messages supports. A cache mark on a part applies to the whole result.
 */
export function toolResultToMessages(content: Json | undefined, id: string, path: string, dropped: Dropped): JsonObject {
  const result: JsonObjectDraft = { type: "tool_result", tool_use_id: id };
  if (typeof content === "string") {
    if (!isBlank(content)) result.content = content;
    return result;
  }
  if (isAbsent(content)) return result;
  const blocks = readArray(content, path).flatMap((value, index): JsonObject[] => {
    const partPath = `${path}.${index}`;
    const [part, mark] = takeCacheMark(readObject(value, partPath), partPath, dropped);
    if (mark) result.cache_control = mark;
    if (part.type === "image_url") return [imageToMessages(part, partPath, dropped)];
    if (part.type !== "text") throw new ConversionRefused(partPath, `${quoteName(part.type)} can't stand in a tool result here`);
    const text = readText(part, partPath, dropped);
    return isBlank(text) ? [] : [{ type: "text", text }];
  });
  if (blocks.length > 0) result.content = blocks;
  return result;
}

/** The parts of a `tool_result`, as parts of a Chat Completions message. */
export function resultParts(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (isAbsent(content)) return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return readArray(content, path).flatMap((value, index): readonly JsonObject[] => {
    const partPath = `${path}.${index}`;
    const part = readObject(value, partPath);
    switch (part.type) {
      case "text":
        return [{ type: "text", text: readText(part, partPath, dropped) }];
      case "image":
        return [imageToChat(part, partPath, dropped)];
      case "document":
        return documentToChat(part, partPath, dropped);
      case "search_result":
        return [searchResultToChat(part, partPath, dropped)];
      case "tool_reference":
        // In Chat Completions all tools are loaded from the start, so only the found names are written.
        return [{ type: "text", text: `[tool found: ${readString(part.tool_name, `${partPath}.tool_name`)}]` }];
      default:
        throw new ConversionRefused(partPath, `${quoteName(part.type)} can't stand in a tool result here`);
    }
  });
}
