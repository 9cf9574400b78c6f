import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { isAbsent, quoteName, readArray, readObject, readOptional, readString } from "../request/read-field.ts";
import { fileToMessages } from "./document-parts.ts";
import { imageToMessages } from "./image-parts.ts";
import { isBlank, readText, textBlock } from "./text-parts.ts";

/**
 * What a user of Chat Completions said, as blocks of Messages; text of whitespace alone is left out.
 * @throws ConversionRefused for a part that Messages can't hold, such as audio.
 */
export function userContentToMessages(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return isBlank(content) ? [] : [textBlock(content)];
  return readArray(content, path).flatMap((value, index): JsonObject[] => {
    const partPath = `${path}.${index}`;
    const part = readObject(value, partPath);
    switch (part.type) {
      case "text": {
        const text = readText(part, partPath, dropped);
        return isBlank(text) ? [] : [textBlock(text)];
      }
      case "image_url":
        return [imageToMessages(part, partPath, dropped)];
      case "file":
        return [fileToMessages(part, partPath, dropped)];
      default:
        throw new ConversionRefused(partPath, `a part of type ${quoteName(part.type)} has no counterpart here`);
    }
  });
}

/** What the assistant said, as text blocks. A refusal is said too: Messages has no other place for it. */
export function assistantTextsToMessages(message: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  const refusal = readOptional(message.refusal, `${path}.refusal`, readString);
  const said = isAbsent(message.content) ? [] : readSaid(message.content, `${path}.content`, dropped);
  const texts = refusal === undefined ? said : [...said, refusal];
  return texts.filter((text) => !isBlank(text)).map(textBlock);
}

function readSaid(content: Json, path: string, dropped: Dropped): readonly string[] {
  if (typeof content === "string") return [content];
  return readArray(content, path).map((value, index) => {
    const part = readObject(value, `${path}.${index}`);
    if (part.type === "text") return readText(part, `${path}.${index}`, dropped);
    if (part.type === "refusal") return readString(part.refusal, `${path}.${index}.refusal`);
    throw new ConversionRefused(`${path}.${index}`, `a part of type ${quoteName(part.type)} has no counterpart here`);
  });
}
