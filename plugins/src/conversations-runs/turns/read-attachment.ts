import { buffer } from "node:stream/consumers";
import { ports } from "@portico/core";
import * as v from "valibot";
import { READ_CHARACTERS, READ_IMAGE_BYTES } from "../limits.ts";
import type { TurnRoom } from "./shown-files.ts";

const readArguments = v.strictObject({
  fileReference: v.pipe(v.string(), v.nonEmpty()),
  offset: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0)), 0),
});

export const readAttachmentDefinition: ports.ToolDefinition = {
  id: "ReadAttachment",
  name: "ReadAttachment",
  description: `Reads a file that the user attached: texts in pieces of up to ${READ_CHARACTERS} characters, and images.`,
  inputSchema: {
    type: "object",
    properties: {
      fileReference: { type: "string", minLength: 1, description: "As the message names it" },
      offset: { type: "integer", minimum: 0, description: "Characters to skip" },
    },
    required: ["fileReference"],
    additionalProperties: false,
  },
  riskLevel: "low",
  requiresConfirmation: false,
  idempotent: true,
};

/** Of a character of two, which goes whole into the next piece. */
const HALF_AT_END = /[\ud800-\udbff]$/;
const SHOWN_IMAGE = /^image\/(?:jpeg|png|gif|webp)$/;

/** Reads an attachment of this user. Turns of other users have no access (specification 4.5, open points 3). Throws ToolArgumentsInvalid. */
export async function readAttachment(
  { files, userId, room }: { readonly files: ports.UserFiles | undefined; readonly userId: string; readonly room: TurnRoom },
  args: unknown,
  signal: AbortSignal,
): Promise<ports.ToolResult> {
  const parsed = v.safeParse(readArguments, args);
  if (!parsed.success) throw new ports.ToolArgumentsInvalid("expected fileReference, and perhaps offset");
  const { fileReference, offset } = parsed.output;
  const file = await files?.attachment(userId, fileReference);
  if (!file) return failed("There is no such attachment");
  if (SHOWN_IMAGE.test(file.mimeType)) {
    if (file.size > READ_IMAGE_BYTES) return failed("The image is too large to be shown");
    if (!room.take(file.size)) return failed("Too many images are being shown: this one cannot be shown now");
    const bytes = await buffer(await file.open(signal));
    return { content: [{ type: "image", mimeType: file.mimeType, data: bytes.toString("base64") }], isError: false };
  }
  const text = await readText(file, offset, signal);
  if (text === undefined) return failed(`This is no text, but ${file.mimeType} of ${file.size} bytes`);
  return { content: [{ type: "text", text }], isError: false };
}

/** A part of a text, with a note if more text follows. Undefined for bytes that are not UTF-8. Keeps only this part in memory. */
async function readText(file: ports.UserFile, offset: number, signal: AbortSignal): Promise<string | undefined> {
  const stream = await file.open(signal);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [skipped, piece] = [0, ""];
  try {
    for await (const chunk of stream) {
      let text = decoder.decode(chunk as Uint8Array, { stream: true });
      if (text.includes("\0")) return undefined;
      const skips = Math.min(offset - skipped, text.length);
      skipped += skips;
      text = text.slice(skips);
      piece += text;
      if (piece.length <= READ_CHARACTERS) continue;
      const shown = piece.slice(0, READ_CHARACTERS).replace(HALF_AT_END, "");
      return `${shown}\n[there is more: go on with offset ${offset + shown.length}]`;
    }
    decoder.decode();
    return piece;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TypeError) return undefined;
    throw error;
  } finally {
    stream.destroy();
  }
}

function failed(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
