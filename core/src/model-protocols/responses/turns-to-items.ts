import { isBlank } from "../../kit/text.ts";
import type { CallIds } from "../fit/call-ids.ts";
import { fitMediaPart } from "../fit/fit-media-part.ts";
import { EMPTY_PLACEHOLDER } from "../fit/fitted-request.ts";
import type { ToolNames } from "../fit/tool-names.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  quoteName,
  readArray,
  readBoolean,
  readObject,
  readOptional,
  readString,
} from "../request/fields.ts";
import { readSignedToolId, toolIdForChat } from "../tool-ids.ts";
import { BLOCK_SEPARATOR, readText, readTexts } from "../turns/text-parts.ts";
import { TOOL_ERROR_MARK } from "../turns/tool-error-mark.ts";
import { resultParts, TOOL_RESULT_FIELDS, toolUseToChat } from "../turns/tools-in-turns.ts";
import { MESSAGE_FIELDS, refusedBlock, userBlockToChat } from "../turns/turns-to-chat.ts";
import { type ReasoningMark, readReasoningMark } from "./reasoning-mark.ts";

/** What the turns of one request share. */
export interface ItemsContext {
  /** The provider whose reasoning may be sent back. */
  readonly owner: string;
  /** False: notes take the place of images and files. */
  readonly takesImages: boolean;
  readonly names: ToolNames;
  readonly ids: CallIds;
  readonly dropped: Dropped;
}

/**
 * Converts the `messages` of a Messages request to the items of a Responses request, in their order. Reasoning is sent back only together
 * with what followed it: "reasoning was provided without its required following item" (continuedev/continue#8933).
 * @throws ConversionRefused with the path of content that has no counterpart.
 */
export function turnsToItems(value: Json | undefined, context: ItemsContext): readonly JsonObject[] {
  const turns = readArray(value, "messages");
  if (turns.length === 0) throw new ConversionRefused("messages", "must not be empty");
  const reasoning = new Set<string>();
  const items = turns.flatMap((turn, index): readonly JsonObject[] => {
    const path = `messages.${index}`;
    const message = readObject(turn, path);
    dropUnknown(message, MESSAGE_FIELDS, "messages.", context.dropped);
    switch (message.role) {
      case "user":
        return userItems(message.content, `${path}.content`, context);
      case "assistant":
        return assistantItems(message.content, `${path}.content`, context, reasoning);
      case "system": {
        const text = readTexts(message.content, `${path}.content`, context.dropped).join(BLOCK_SEPARATOR);
        return isBlank(text) ? [] : [{ type: "message", role: "developer", content: text }];
      }
      default:
        throw new ConversionRefused(`${path}.role`, `${quoteName(message.role)} is no role of this protocol`);
    }
  });
  return withoutLooseReasoning(items, context.dropped);
}

/** Results come first: the item of a call must be followed by its output. */
function userItems(content: Json | undefined, path: string, context: ItemsContext): readonly JsonObject[] {
  if (typeof content === "string") return [said("user", isBlank(content) ? EMPTY_PLACEHOLDER : content)];
  const results: JsonObject[] = [];
  const parts: JsonObject[] = [];
  for (const [index, value] of readArray(content, path).entries()) {
    const blockPath = `${path}.${index}`;
    const block = readObject(value, blockPath);
    if (block.type === "tool_result") results.push(outputItem(block, blockPath, context));
    else if (isAddress(block)) parts.push(addressedFile(block, context));
    else
      for (const part of userBlockToChat(block, blockPath, context.dropped))
        if (!isBlankText(part)) parts.push(inputPart(fitted(part, context)));
  }
  if (parts.length > 0) return [...results, { type: "message", role: "user", content: parts }];
  return results.length > 0 ? results : [said("user", EMPTY_PLACEHOLDER)];
}

function outputItem(block: JsonObject, path: string, context: ItemsContext): JsonObject {
  const { ids, dropped } = context;
  dropUnknown(block, TOOL_RESULT_FIELDS, "messages.content.", dropped);
  const id = toolIdForChat(readSignedToolId(readString(block.tool_use_id, `${path}.tool_use_id`)).id);
  const failed = readOptional(block.is_error, `${path}.is_error`, readBoolean);
  const parts = resultParts(block.content, `${path}.content`, dropped)
    .filter((part) => !isBlankText(part))
    .map((part) => fitted(part, context));
  if (failed) parts.unshift({ type: "text", text: TOOL_ERROR_MARK });
  const isText = parts.every((part) => part.type === "text");
  const output = isText ? parts.map((part) => part.text).join(failed ? " " : BLOCK_SEPARATOR) : parts.map(inputPart);
  return { type: "function_call_output", call_id: ids.answered(id) as string, output };
}

function assistantItems(
  content: Json | undefined,
  path: string,
  { owner, names, ids, dropped }: ItemsContext,
  reasoning: Set<string>,
): readonly JsonObject[] {
  if (typeof content === "string") return isBlank(content) ? [] : [said("assistant", content)];
  ids.next();
  const items: JsonObjectDraft[] = [];
  /** The message that followed the last reasoning item, until the next item. */
  let following: ReasoningMark["message"];
  let last: Json | undefined;
  for (const [index, value] of readArray(content, path).entries()) {
    const blockPath = `${path}.${index}`;
    const block = readObject(value, blockPath);
    if (block.type === "thinking" || block.type === "redacted_thinking") {
      const item = reasoningItem(block, blockPath, owner);
      following = item?.mark.message;
      if (item && !reasoning.has(item.mark.id)) items.push(item.body);
      else dropped.add(`messages.content.${block.type}`);
      if (item) reasoning.add(item.mark.id);
    } else if (block.type === "text") {
      const text = readText(block, blockPath, dropped);
      if (isBlank(text)) continue;
      // Adjacent blocks are parts of one text that was split at citations.
      const before = last === "text" ? items.at(-1) : undefined;
      if (before) appendText(before, text);
      else items.push(following ? answered(text, following) : said("assistant", text));
      following = undefined;
    } else if (block.type === "tool_use") {
      const { id, function: called } = toolUseToChat(block, blockPath, false, dropped) as { id: string; function: JsonObject };
      following = undefined;
      items.push({
        type: "function_call",
        call_id: ids.called(id) as string,
        name: names.accepted(called.name) as string,
        arguments: called.arguments,
      });
    } else {
      throw refusedBlock(block, blockPath);
    }
    last = block.type;
  }
  return items;
}

/** `summary` is required, also if it is empty (newo-ether/Agora#141). */
function reasoningItem(
  block: JsonObject,
  path: string,
  owner: string,
): { readonly mark: ReasoningMark; readonly body: JsonObject } | undefined {
  const isRedacted = block.type === "redacted_thinking";
  const signature = isRedacted
    ? readString(block.data, `${path}.data`)
    : (readOptional(block.signature, `${path}.signature`, readString) ?? "");
  const mark = readReasoningMark(signature, owner);
  if (!mark) return undefined;
  const text = isRedacted ? "" : readString(block.thinking, `${path}.thinking`);
  if (mark.encrypted === undefined) {
    // Servers of open models refuse reasoning without its text (am17an/llama.cpp#50).
    if (text === "") return undefined;
    return { mark, body: { type: "reasoning", id: mark.id, summary: [], content: [{ type: "reasoning_text", text }] } };
  }
  const summary = text === "" ? [] : [{ type: "summary_text", text }];
  return { mark, body: { type: "reasoning", id: mark.id, summary, encrypted_content: mark.encrypted } };
}

function withoutLooseReasoning(items: readonly JsonObject[], dropped: Dropped): readonly JsonObject[] {
  let isFollowed = false;
  const kept = items.toReversed().filter((item) => {
    if (item.type === "reasoning") return isFollowed;
    isFollowed = item.type === "function_call" || item.role === "assistant";
    return true;
  });
  if (kept.length < items.length) dropped.add("messages.content.thinking");
  return kept.toReversed();
}

function said(role: "user" | "assistant", content: string): JsonObjectDraft {
  return { type: "message", role, content };
}

/** A message as the provider wrote it. Its parts are `output_text`: "Invalid value: 'input_text'" (langchain-ai/langchainjs#11169). */
function answered(text: string, { id, phase }: NonNullable<ReasoningMark["message"]>): JsonObjectDraft {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { type: "message", id, role: "assistant", status: "completed", content, ...(phase !== undefined && { phase }) };
}

function appendText(message: JsonObjectDraft, text: string): void {
  if (typeof message.content === "string") message.content += text;
  else message.content = [...(message.content as readonly Json[]), { type: "output_text", text, annotations: [] }];
}

/** The part as the model takes it. A note in its place is reported by the name of its block. */
function fitted(part: JsonObject, { takesImages, dropped }: ItemsContext): JsonObject {
  const taken = fitMediaPart(part, takesImages) as JsonObject;
  if (taken.type !== part.type) dropped.add(`messages.content.${part.type === "image_url" ? "image" : "document"}`);
  return taken;
}

/** A part of a Chat Completions message as a part of an input item. */
function inputPart(part: JsonObject): JsonObject {
  if (part.type === "image_url") return { type: "input_image", image_url: (part.image_url as JsonObject).url, detail: "auto" };
  if (part.type === "file") return { type: "input_file", ...(part.file as JsonObject) };
  return { type: "input_text", text: part.text };
}

function isBlankText(part: JsonObject): boolean {
  return part.type === "text" && isBlank(String(part.text));
}

const DOCUMENT_FIELDS = new Set(["type", "source", "title"]);

/** A document at an address. Unlike Chat Completions, Responses reads one: platform.openai.com/docs/guides/pdf-files. */
function isAddress({ type, source }: JsonObject): boolean {
  return type === "document" && typeof source === "object" && source !== null && (source as JsonObject).type === "url";
}

function addressedFile(block: JsonObject, context: ItemsContext): JsonObject {
  dropUnknown(block, DOCUMENT_FIELDS, "messages.content.", context.dropped);
  const { url } = block.source as JsonObject;
  const file = { file_url: readString(url, "messages.content.source.url") };
  return inputPart(fitted({ type: "file", file }, context));
}
