import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readObject,
  readOptional,
  readString,
} from "../request/fields.ts";
import { textBlock } from "./text-parts.ts";

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

/** Messages has no audio. Agents write such blocks for providers of Chat Completions. */
export function audioToChat(block: JsonObject, path: string): JsonObject {
  const source = readObject(block.source, `${path}.source`);
  const mediaType = readString(source.media_type, `${path}.source.media_type`);
  const data = readString(source.data, `${path}.source.data`);
  return { type: "input_audio", input_audio: { data, format: mediaType === "audio/wav" ? "wav" : "mp3" } };
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

const PDF = "application/pdf";
const TEXT = "text/plain";
/** Chat Completions requires a name for a file. In Messages the name is optional. */
const FILE_NAME = "document.pdf";

const DOCUMENT_FIELDS = new Set(["type", "source", "title", "context"]);
const SEARCH_RESULT_FIELDS = new Set(["type", "source", "title", "content"]);
const FILE_PART_FIELDS = new Set(["type", "file"]);
const FILE_FIELDS = new Set(["file_data", "filename", "file_id"]);

/**
 * Converts a `document` block. A PDF becomes a `file` part. Text becomes text between `<document>` tags with its title and context.
 * Mixed content becomes the same, and images keep their places. Flags for citations are dropped.
 * @throws ConversionRefused for a source that Chat Completions cannot fetch: a URL, or a file in the provider's own storage.
 */
export function documentToChat(block: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  dropUnknown(block, DOCUMENT_FIELDS, "messages.content.", dropped);
  const title = readOptional(block.title, `${path}.title`, readString);
  const context = readOptional(block.context, `${path}.context`, readString);
  const source = readObject(block.source, `${path}.source`);
  if (source.type === "base64") {
    const file = { type: "file", file: { filename: title || FILE_NAME, file_data: pdfUrl(source, `${path}.source`) } };
    return context ? [textBlock(tagged("document_context", context)), file] : [file];
  }
  const head = ["<document>", ...(title ? [tagged("title", title)] : []), ...(context ? [tagged("context", context)] : [])].join(
    "\n",
  );
  const asText = (content: string) => [textBlock(`${head}\n${content}\n</document>`)];
  if (source.type === "text") return asText(readString(source.data, `${path}.source.data`));
  if (source.type !== "content") {
    throw new ConversionRefused(`${path}.source`, `a document source of type ${quoteName(source.type)} has no counterpart here`);
  }
  if (typeof source.content === "string") return asText(source.content);
  const inner = readArray(source.content, `${path}.source.content`).map((value, index) => {
    const innerPath = `${path}.source.content.${index}`;
    const part = readObject(value, innerPath);
    if (part.type === "image") return imageToChat(part, innerPath, dropped);
    if (part.type === "text") return textBlock(readString(part.text, `${innerPath}.text`));
    throw new ConversionRefused(innerPath, `a block of type ${quoteName(part.type)} can't stand in a document`);
  });
  return [textBlock(head), ...inner, textBlock("</document>")];
}

/** Converts a `search_result` block to text between tags, with its title and source. */
export function searchResultToChat(block: JsonObject, path: string, dropped: Dropped): JsonObject {
  dropUnknown(block, SEARCH_RESULT_FIELDS, "messages.content.", dropped);
  const title = readString(block.title, `${path}.title`);
  const source = readString(block.source, `${path}.source`);
  const lines = readArray(block.content, `${path}.content`).map((value, index) => {
    const part = readObject(value, `${path}.content.${index}`);
    return readString(part.text, `${path}.content.${index}.text`);
  });
  return textBlock(
    ["<search_result>", tagged("title", title), tagged("source", source), ...lines, "</search_result>"].join("\n"),
  );
}

/**
 * Converts a `file` part to a `document` block with its name as the title. It accepts PDF, and plain text, which Messages requires decoded.
 * @throws ConversionRefused for a file in the provider's own storage, or of any other type.
 */
export function fileToMessages(part: JsonObject, path: string, dropped: Dropped): JsonObject {
  dropUnknown(part, FILE_PART_FIELDS, "messages.content.", dropped);
  const file = readObject(part.file, `${path}.file`);
  dropUnknown(file, FILE_FIELDS, "messages.content.file.", dropped);
  if (!isAbsent(file.file_id))
    throw new ConversionRefused(`${path}.file.file_id`, "this provider can't read files stored elsewhere");
  const name = readOptional(file.filename, `${path}.file.filename`, readString);
  const document: JsonObjectDraft = {
    type: "document",
    source: sourceOfFile(readString(file.file_data, `${path}.file.file_data`), name, `${path}.file.file_data`),
  };
  if (name) document.title = name;
  return document;
}

function sourceOfFile(fileData: string, name: string | undefined, path: string): Json {
  // The protocol says "base64 encoded file data", but its examples are data URLs. Clients send both.
  const bare = !/^data:/i.test(fileData.slice(0, 5)) && (name === undefined || /\.pdf$/i.test(name));
  const { mediaType, data } = bare ? { mediaType: PDF, data: fileData } : readDataUrl(fileData, path);
  if (mediaType === PDF) return { type: "base64", media_type: PDF, data };
  if (mediaType === TEXT) return { type: "text", media_type: TEXT, data: decodeText(data, path) };
  throw new ConversionRefused(path, "must be a PDF or plain text");
}

function decodeText(data: string, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(data, "base64"));
  } catch {
    throw new ConversionRefused(path, "must be text in UTF-8");
  }
}

function pdfUrl(source: JsonObject, path: string): string {
  if (source.media_type !== PDF) throw new ConversionRefused(`${path}.media_type`, "must be application/pdf");
  return `data:${PDF};base64,${readString(source.data, `${path}.data`)}`;
}

function tagged(tag: string, content: string): string {
  return `<${tag}>${content}</${tag}>`;
}

/** Longer than the header of any usual data URL. The limit prevents searching megabytes of data. */
const HEADER_LENGTH = 256;

export interface DataUrl {
  /** Lower case, without parameters. */
  readonly mediaType: string;
  /** The base64 text as a slice of the URL, neither decoded nor copied. */
  readonly data: string;
}

/** Reads a `data:` URL in base64. @throws ConversionRefused for any other URL; the error does not contain the URL. */
export function readDataUrl(url: string, path: string): DataUrl {
  const header = /^data:([^;,\s]+)(?:;[^;,]*)*;base64,/i.exec(url.slice(0, HEADER_LENGTH));
  if (!header?.[1]) throw new ConversionRefused(path, "must be an http, https or base64 data URL");
  return { mediaType: header[1].toLowerCase(), data: url.slice(header[0].length) };
}
