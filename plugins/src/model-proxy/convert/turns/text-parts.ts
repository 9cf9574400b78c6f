import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { dropUnknown, quoteName, readArray, readObject, readString } from "../request/read-field.ts";

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
  if (!parts.every((part) => part.type === "text")) return parts;
  return parts.map((part) => part.text).join(BLOCK_SEPARATOR);
}

/** Text blocks of only whitespace are left out, because Messages refuses them. */
export function isBlank(text: string): boolean {
  // trim() would copy a long text only to compare it.
  return !/\S/.test(text);
}

/** A text block of Messages, or part of Chat Completions. */
export function textBlock(text: string): JsonObject {
  return { type: "text", text };
}
