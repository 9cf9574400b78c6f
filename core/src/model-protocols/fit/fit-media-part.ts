import { isRecord } from "../../kit/json-object.ts";
import { fitImage, imageNote } from "./fit-image.ts";
import type { JsonRecord } from "./fitted-request.ts";

/**
 * A part of a Chat Completions message with the true type of its image. If the model does not read the part, a text takes its place, which says
 * so. Other parts stay as they are.
 */
export function fitMediaPart(part: JsonRecord, takesImages: boolean): JsonRecord {
  if (part["type"] === "file" || part["type"] === "input_audio")
    return takesImages ? part : noted("[a file that cannot be shown here]");
  const image = part["image_url"];
  const url = part["type"] === "image_url" && isRecord(image) ? image["url"] : undefined;
  if (typeof url !== "string") return part;
  const head = /^data:([^;,]{0,100});base64,/.exec(url.slice(0, 128));
  if (!takesImages) return noted(imageNote(head?.[1] ?? "at an address"));
  if (!head) return part;
  const data = url.slice(head[0].length);
  const fitted = fitImage(head[1]!, data);
  if ("note" in fitted) return noted(fitted.note);
  return fitted.mediaType === head[1]
    ? part
    : { ...part, image_url: { ...(image as JsonRecord), url: `data:${fitted.mediaType};base64,${data}` } };
}

function noted(text: string): JsonRecord {
  return { type: "text", text };
}
