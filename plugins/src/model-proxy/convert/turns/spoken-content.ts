import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { takeCacheMark, withCacheMark } from "../request/cache-mark.ts";
import { isAbsent, quoteName, readArray, readObject, readOptional, readString } from "../request/read-field.ts";
import { fileToMessages } from "./document-parts.ts";
import { imageToMessages } from "./image-parts.ts";
import { isBlank, readText, textBlock } from "./text-parts.ts";

/**
 * Converts the content of a Chat Completions user message to blocks of Messages. Text of only whitespace is left out.
 * @throws ConversionRefused for a part that Messages does not support, such as audio.
 */
export function userContentToMessages(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return isBlank(content) ? [] : [textBlock(content)];
  return readArray(content, path).flatMap((value, index): readonly JsonObject[] => {
    const partPath = `${path}.${index}`;
    const [part, mark] = takeCacheMark(readObject(value, partPath), partPath, dropped);
    switch (part.type) {
      case "text":
        return markedText(readText(part, partPath, dropped), mark, dropped);
      case "image_url":
        return [withCacheMark(imageToMessages(part, partPath, dropped), mark)];
      case "file":
        return [withCacheMark(fileToMessages(part, partPath, dropped), mark)];
      default:
        throw new ConversionRefused(partPath, `a part of type ${quoteName(part.type)} has no counterpart here`);
    }
  });
}

/**
 * Converts content that can only be text, such as an instruction, to text blocks. Text of only whitespace is left out, and a mark on it is
 * dropped.
 */
export function textsToMessages(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return markedText(content, undefined, dropped);
  return readArray(content, path).flatMap((value, index) => {
    const [part, mark] = takeCacheMark(readObject(value, `${path}.${index}`), `${path}.${index}`, dropped);
    if (part.type === "text") return markedText(readText(part, `${path}.${index}`, dropped), mark, dropped);
    throw new ConversionRefused(`${path}.${index}`, `must be text, not ${quoteName(part.type)}`);
  });
}

/** Converts the assistant's content to text blocks. A refusal becomes text, too, because Messages has no other place for it. */
export function assistantTextsToMessages(message: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  const refusal = readOptional(message.refusal, `${path}.refusal`, readString);
  const said = isAbsent(message.content) ? [] : readSaid(message.content, `${path}.content`, dropped);
  return refusal === undefined ? said : [...said, ...markedText(refusal, undefined, dropped)];
}

function readSaid(content: Json, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return markedText(content, undefined, dropped);
  return readArray(content, path).flatMap((value, index) => {
    const [part, mark] = takeCacheMark(readObject(value, `${path}.${index}`), `${path}.${index}`, dropped);
    if (part.type === "text") return markedText(readText(part, `${path}.${index}`, dropped), mark, dropped);
    if (part.type === "refusal") return markedText(readString(part.refusal, `${path}.${index}.refusal`), mark, dropped);
    throw new ConversionRefused(`${path}.${index}`, `a part of type ${quoteName(part.type)} has no counterpart here`);
  });
}

function markedText(text: string, mark: JsonObject | undefined, dropped: Dropped): readonly JsonObject[] {
  if (!isBlank(text)) return [withCacheMark(textBlock(text), mark)];
  if (mark) dropped.add("cache_control");
  return [];
}
