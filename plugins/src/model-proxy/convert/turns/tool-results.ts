import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { takeCacheMark } from "../request/cache-mark.ts";
import {
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readBoolean,
  readObject,
  readOptional,
  readString,
} from "../request/read-field.ts";
import { toolIdForChat } from "../tool-ids.ts";
import { documentToChat, searchResultToChat } from "./document-parts.ts";
import { imageToChat, imageToMessages } from "./image-parts.ts";
import { BLOCK_SEPARATOR, isBlank, readText } from "./text-parts.ts";
import { TOOL_ERROR_MARK } from "./tool-error-mark.ts";

const TOOL_RESULT_FIELDS = new Set(["type", "tool_use_id", "content", "is_error"]);

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
  const id = toolIdForChat(readString(block.tool_use_id, `${path}.tool_use_id`));
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
  return { message: { role: "tool", tool_call_id: id, content: marked }, attachments };
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

function resultParts(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
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
