import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { dropUnknown, isAbsent, quoteName, readObject, readString } from "../request/read-field.ts";
import { readDataUrl } from "./data-url.ts";

const IMAGE_FIELDS = new Set(["type", "source"]);
const IMAGE_URL_FIELDS = new Set(["type", "image_url"]);
const URL_FIELDS = new Set(["url", "detail"]);
const IMAGE_TYPES: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);

/** Converts an `image` block to an `image_url` part. A file in the provider's own storage is refused. */
export function imageToChat(block: JsonObject, path: string, dropped: Dropped): JsonObject {
  dropUnknown(block, IMAGE_FIELDS, "messages.content.", dropped);
  const source = readObject(block.source, `${path}.source`);
  return { type: "image_url", image_url: { url: urlOfSource(source, `${path}.source`) } };
}

/**
 * Converts an `image_url` part to an `image` block. Messages cannot choose a resolution, so `detail` is reported as dropped, unless it is
 * `auto`.
 */
export function imageToMessages(part: JsonObject, path: string, dropped: Dropped): JsonObject {
  dropUnknown(part, IMAGE_URL_FIELDS, "messages.content.", dropped);
  const image = readObject(part.image_url, `${path}.image_url`);
  dropUnknown(image, URL_FIELDS, "messages.content.image_url.", dropped);
  if (!isAbsent(image.detail) && image.detail !== "auto") dropped.add("messages.content.image_url.detail");
  const url = readString(image.url, `${path}.image_url.url`);
  return { type: "image", source: sourceOfUrl(url, `${path}.image_url.url`) };
}

function urlOfSource(source: JsonObject, path: string): string {
  if (source.type === "url") return readString(source.url, `${path}.url`);
  if (source.type !== "base64")
    throw new ConversionRefused(path, `an image source of type ${quoteName(source.type)} has no counterpart here`);
  const mediaType = readImageType(readString(source.media_type, `${path}.media_type`), `${path}.media_type`);
  return `data:${mediaType};base64,${readString(source.data, `${path}.data`)}`;
}

function sourceOfUrl(url: string, path: string): Json {
  if (/^https?:\/\//i.test(url)) return { type: "url", url };
  const { mediaType, data } = readDataUrl(url, path);
  return { type: "base64", media_type: readImageType(mediaType, path), data };
}

function readImageType(mediaType: string, path: string): string {
  // This type is not registered, but common.
  const known = mediaType === "image/jpg" ? "image/jpeg" : mediaType;
  if (!IMAGE_TYPES.has(known)) throw new ConversionRefused(path, "must be a JPEG, PNG, GIF or WebP image");
  return known;
}
