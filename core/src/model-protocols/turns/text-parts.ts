import type { Json, JsonObject } from "../json.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readObject,
  readString,
} from "../request/fields.ts";

/** The separator between the text blocks of one message if they become a single text. */
export const BLOCK_SEPARATOR = "\n\n";

const TEXT_FIELDS = new Set(["type", "text"]);

/** A `text` part or block. Its form is the same in both protocols. */
export function readText(part: JsonObject, path: string, dropped: Dropped): string {
  dropUnknown(part, TEXT_FIELDS, "messages.content.", dropped);
  return readString(part.text, `${path}.text`);
}

/** Content that may only be text: a string, or a list of text parts. */
export function readTexts(content: Json | undefined, path: string, dropped: Dropped): readonly string[] {
  if (typeof content === "string") return [content];
  return readArray(content, path).map((value, index) => {
    const part = readObject(value, `${path}.${index}`);
    if (part.type === "text") return readText(part, `${path}.${index}`, dropped);
    throw new ConversionRefused(`${path}.${index}`, `must be text, not ${quoteName(part.type)}`);
  });
}

/**
 * Chat content with these parts. If all parts are text, it is a plain string, because many servers of Chat Completions do not accept a list
 * of text parts.
 */
export function chatContent(parts: readonly JsonObject[]): Json {
  if (!parts.every((part) => part.type === "text" && part.cache_control === undefined)) return parts;
  return parts.map((part) => part.text).join(BLOCK_SEPARATOR);
}

/** A text part with the cache mark of its block, if the provider takes marks. */
export function markedText(text: string, block: JsonObject, { keepsCacheMarks }: Dropped): JsonObject {
  const mark = keepsCacheMarks ? block.cache_control : undefined;
  return { type: "text", text, ...(!isAbsent(mark) && { cache_control: mark }) };
}

/** A text block of Messages, or part of Chat Completions. */
export function textBlock(text: string): JsonObject {
  return { type: "text", text };
}

/** A line that a coding tool puts first. Its vendor removes the line. For other providers it would break prefix caching, because it differs per conversation. */
const BILLING_LINE = /^x-anthropic-billing-header:[^\n]*\n?/;

/** `system` of Messages becomes the first message, or no message if it is empty. A billing line at its head is left out. */
export function systemToChat(system: Json | undefined, dropped: Dropped): readonly JsonObject[] {
  if (isAbsent(system)) return [];
  const texts = readTexts(system, "system", dropped);
  const blocks = Array.isArray(system) ? (system as readonly JsonObject[]) : [];
  const parts = texts.flatMap((text, at): JsonObject[] => {
    const kept = at === 0 ? text.replace(BILLING_LINE, "") : text;
    if (kept !== text) dropped.add("system.x-anthropic-billing-header");
    return kept === "" ? [] : [markedText(kept, blocks[at] ?? {}, dropped)];
  });
  return parts.length === 0 ? [] : [{ role: "system", content: chatContent(parts) }];
}

/** The instructions at the head of a Chat conversation become `system`. A single instruction without a cache mark stays a string. */
export function systemToMessages(blocks: readonly JsonObject[]): Json | undefined {
  const [only, second] = blocks;
  return second === undefined && isAbsent(only?.cache_control) ? only?.text : blocks;
}

/**
 * An instruction in the middle of a Chat conversation. Only the newest models of Messages accept a system message there. Moving it to the
 * head would apply it to earlier turns, too. So it stays at its place, as marked text in the user's turn.
 */
export function instructionInPlace(blocks: readonly JsonObject[]): JsonObject {
  const text = blocks.map((block) => block.text).join(BLOCK_SEPARATOR);
  const mark = blocks.findLast((block) => !isAbsent(block.cache_control))?.cache_control;
  return { type: "text", text: `<system>\n${text}\n</system>`, ...(mark !== undefined && { cache_control: mark }) };
}
