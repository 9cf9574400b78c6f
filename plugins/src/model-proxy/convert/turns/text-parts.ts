import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { dropUnknown, quoteName, readArray, readObject, readString } from "../request/read-field.ts";

/** What stands between the text blocks of one message where the other protocol gets a single text. */
export const BLOCK_SEPARATOR = "\n\n";

const TEXT_FIELDS = new Set(["type", "text"]);

/** A `text` part or block; both protocols spell it alike. */
export function readText(part: JsonObject, path: string, dropped: Dropped): string {
  dropUnknown(part, TEXT_FIELDS, "messages.content.", dropped);
  return readString(part.text, `${path}.text`);
}

/** Content that can only be text: a string, or a list of text parts. */
export function readTexts(content: Json | undefined, path: string, dropped: Dropped): readonly string[] {
  if (typeof content === "string") return [content];
  return readArray(content, path).map((value, index) => {
    const part = readObject(value, `${path}.${index}`);
    if (part.type === "text") return readText(part, `${path}.${index}`, dropped);
    throw new ConversionRefused(`${path}.${index}`, `must be text, not ${quoteName(part.type)}`);
  });
}

/**
 * Chat content of these parts: a plain string where all is text, since many servers of Chat Completions know no list of parts
 * for it.
 */
export function chatContent(parts: readonly JsonObject[]): Json {
  if (!parts.every((part) => part.type === "text")) return parts;
  return parts.map((part) => part.text).join(BLOCK_SEPARATOR);
}

/** Messages refuses text blocks of whitespace alone; they are left out. */
export function isBlank(text: string): boolean {
  // Not trim(): that would copy a long text only to compare it.
  return !/\S/.test(text);
}

/** A text block of Messages, or part of Chat Completions. */
export function textBlock(text: string): JsonObject {
  return { type: "text", text };
}
