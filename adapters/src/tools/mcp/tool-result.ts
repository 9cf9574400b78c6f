import { hasInexactWhole, type ports } from "@portico/core";
import * as v from "valibot";

/** A longer text costs a model more than it is worth. */
const TEXT_BYTES = 1024 * 1024;
const INEXACT =
  "The tool was executed, but its result has a whole number beyond ±(2^53 - 1) outside of a text, whose digits are not exact. The result is left out.";
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Checks as little of an answer as possible. The content is read part by part, so that new kinds of content are allowed. */
export const callAnswerSchema = v.looseObject({
  content: v.nullish(v.array(v.unknown()), []),
  structuredContent: v.optional(v.unknown()),
  isError: v.nullish(v.boolean(), false),
});

/** The part of a server's answer that a model reads: texts and images, and a note in place of any other content. */
export function toToolResult({ content, structuredContent, isError }: v.InferOutput<typeof callAnswerSchema>): ports.ToolResult {
  const parts = content.map((part) => toContent(part as Part | null));
  if (parts.length === 0 && structuredContent !== undefined) {
    const json = JSON.stringify(structuredContent);
    // The digits are lost when the client reads the answer.
    if (hasInexactWhole(json)) return errorResult(INEXACT);
    parts.push(text(json));
  }
  return { content: parts, isError };
}

/** The documents of an answer. */
export const readAnswerSchema = v.looseObject({ contents: v.array(v.unknown()) });

/** The part of a document that a model reads. */
export function toReadResult({ contents }: v.InferOutput<typeof readAnswerSchema>): ports.ToolResult {
  return toToolResult({ content: contents.map((resource) => ({ type: "resource", resource })), isError: false });
}

/** A result that tells a model why the call has no other result. */
export function errorResult(message: string): ports.ToolResult {
  return { content: [text(message)], isError: true };
}

interface Part {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: { readonly uri?: unknown; readonly mimeType?: unknown; readonly text?: unknown; readonly blob?: unknown };
}

function toContent(part: Part | null): ports.ToolContent {
  const type = part?.type;
  if (type === "text" && typeof part?.text === "string") return text(part.text);
  if (type === "image") return image(part?.mimeType, part?.data) ?? note("an image that cannot be read");
  if (type === "audio") return note(`audio${kind(part?.mimeType)}, which cannot be played here`);
  if (type === "resource_link") return text(link(part!));
  if (type === "resource" && part?.resource) return fromResource(part.resource);
  return note("content of a kind that cannot be read here");
}

function fromResource(resource: NonNullable<Part["resource"]>): ports.ToolContent {
  const uri = typeof resource.uri === "string" ? resource.uri : "unnamed";
  if (typeof resource.text === "string") return text(`Resource ${uri}\n\n${resource.text}`);
  return image(resource.mimeType, resource.blob) ?? note(`the resource ${uri}${kind(resource.mimeType)}, which is no text`);
}

function link({ uri, name }: Part): string {
  const address = typeof uri === "string" ? uri : "unnamed";
  return typeof name === "string" && name !== "" ? `Resource ${name}: ${address}` : `Resource ${address}`;
}

function image(mimeType: unknown, data: unknown): ports.ToolContent | undefined {
  if (typeof mimeType !== "string" || !/^image\/[\w.+-]+$/.test(mimeType)) return undefined;
  return typeof data === "string" && BASE64.test(data) ? { type: "image", mimeType, data } : undefined;
}

function note(what: string): ports.ToolContent {
  return text(`[The tool gave ${what}]`);
}

/** A type in brackets, if it is valid: it is untrusted text inside our own sentence. */
function kind(mimeType: unknown): string {
  return typeof mimeType === "string" && /^[\w.+-]+\/[\w.+-]+$/.test(mimeType) ? ` (${mimeType})` : "";
}

function text(given: string): ports.ToolContent {
  // Model services refuse an unpaired surrogate, for example where a server cut its text, and with it the whole conversation.
  const whole = given.toWellFormed();
  // A text needs at least as many bytes as characters and at most three times as many.
  if (whole.length * 3 <= TEXT_BYTES) return { type: "text", text: whole };
  const bytes = Buffer.from(whole);
  if (bytes.length <= TEXT_BYTES) return { type: "text", text: whole };
  // `stream` leaves out a character that was cut.
  const start = new TextDecoder().decode(bytes.subarray(0, TEXT_BYTES), { stream: true });
  return { type: "text", text: `${start}\n[Cut here: the text has ${bytes.length} bytes, of which ${TEXT_BYTES} are shown]` };
}
