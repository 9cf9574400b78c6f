import type { ChatDialect } from "../../ports/models.ts";
import { ConversionRefused, type Dropped, dropUnknown, quoteName, readArray, readObject, readString } from "../request/fields.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { audioToChat, documentToChat, imageToChat, searchResultToChat } from "./media-parts.ts";
import { BLOCK_SEPARATOR, chatContent, markedText, readText, readTexts } from "./text-parts.ts";
import { thinkingToChat } from "./thinking-blocks.ts";
import { toolResultToChat, toolUseToChat } from "./tools-in-turns.ts";

export const MESSAGE_FIELDS = new Set(["role", "content"]);

/**
 * Converts the `messages` of a Messages request to those of a Chat Completions request, in their order. If the provider accepts no earlier
 * reasoning, reasoning is left out, and so are turns that contain nothing else.
 * @throws ConversionRefused with the path of content that Chat Completions does not support.
 */
export function turnsToChat(value: Json | undefined, dialect: ChatDialect, dropped: Dropped): readonly JsonObject[] {
  const turns = readArray(value, "messages");
  if (turns.length === 0) throw new ConversionRefused("messages", "must not be empty");
  return turns.flatMap((turn, index): readonly JsonObject[] => {
    const path = `messages.${index}`;
    const message = readObject(turn, path);
    dropUnknown(message, MESSAGE_FIELDS, "messages.", dropped);
    switch (message.role) {
      case "user":
        return userToChat(message.content, `${path}.content`, dropped);
      case "assistant":
        return assistantToChat(message.content, `${path}.content`, dialect, dropped);
      case "system":
        return [{ role: "system", content: readTexts(message.content, `${path}.content`, dropped).join(BLOCK_SEPARATOR) }];
      default:
        throw new ConversionRefused(`${path}.role`, `${quoteName(message.role)} is no role of this protocol`);
    }
  });
}

/** Tool messages must directly follow their calls, so the results of a turn come before the user's other content. */
function userToChat(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return [{ role: "user", content }];
  const results: JsonObject[] = [];
  const parts: JsonObject[] = [];
  for (const [index, value] of readArray(content, path).entries()) {
    const blockPath = `${path}.${index}`;
    const block = readObject(value, blockPath);
    if (block.type === "tool_result") {
      const result = toolResultToChat(block, blockPath, dropped);
      results.push(result.message);
      for (const part of result.attachments) parts.push(part);
    } else {
      for (const part of userBlockToChat(block, blockPath, dropped)) parts.push(part);
    }
  }
  return parts.length === 0 && results.length > 0 ? results : [...results, { role: "user", content: chatContent(parts) }];
}

/** A block of a user, but no result of a tool, as parts of a Chat Completions message. */
export function userBlockToChat(block: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  switch (block.type) {
    case "text": {
      const text = readText(block, path, dropped);
      return text === "" ? [] : [markedText(text, block, dropped)];
    }
    case "image":
      return [imageToChat(block, path, dropped)];
    case "document":
      return documentToChat(block, path, dropped);
    case "audio":
      return [audioToChat(block, path)];
    case "search_result":
      return [searchResultToChat(block, path, dropped)];
    default:
      throw refusedBlock(block, path);
  }
}

function assistantToChat(
  content: Json | undefined,
  path: string,
  { reasoningContent, thoughtSignatures }: ChatDialect,
  dropped: Dropped,
): readonly JsonObject[] {
  if (typeof content === "string") return [{ role: "assistant", content }];
  const thinking: JsonObject[] = [];
  const thinkingPaths: string[] = [];
  const calls: JsonObject[] = [];
  let text = "";
  let textFollows = false;
  for (const [index, value] of readArray(content, path).entries()) {
    const blockPath = `${path}.${index}`;
    const block = readObject(value, blockPath);
    if (block.type === "text") {
      // Adjacent blocks are parts of one text that was split at citations. Other blocks are separate.
      const piece = readText(block, blockPath, dropped);
      text += text === "" || textFollows ? piece : BLOCK_SEPARATOR + piece;
    } else if (block.type === "tool_use") {
      calls.push(toolUseToChat(block, blockPath, thoughtSignatures, dropped));
    } else if (block.type === "thinking" || block.type === "redacted_thinking") {
      if (!reasoningContent) dropped.add(`messages.content.${block.type}`);
      thinking.push(block);
      thinkingPaths.push(blockPath);
    } else {
      throw refusedBlock(block, blockPath);
    }
    textFollows = block.type === "text";
  }
  const message: JsonObjectDraft = { role: "assistant", content: text === "" && calls.length > 0 ? null : text };
  if (thinking.length > 0 && reasoningContent) Object.assign(message, thinkingToChat(thinking, thinkingPaths, dropped));
  else if (thinking.length > 0 && text === "" && calls.length === 0) return [];
  if (calls.length > 0) message.tool_calls = calls;
  return [message];
}

/** The error for a block that has no counterpart. */
export function refusedBlock(block: JsonObject, path: string): ConversionRefused {
  readString(block.type, `${path}.type`);
  return new ConversionRefused(path, `a block of type ${quoteName(block.type)} has no counterpart here`);
}
