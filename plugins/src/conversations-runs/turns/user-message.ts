import { maxCharacters, ports } from "@portico/core";
import * as v from "valibot";
import { EVENT_CHARACTERS, MESSAGE_ATTACHMENTS, MESSAGE_BLOCKS, REFERENCE_LENGTH } from "../limits.ts";
import { boundedText } from "./bounds.ts";

/** A message to people, as it is shown: with `message`, or degraded to `text` (specification 2.6). */
export interface UserMessage extends ports.DeliveredMessage {
  readonly text?: string | undefined;
}

/**
 * JSON Schema of the arguments of `SendUserMessage`. Every message has a text. Blocks are not validated strictly here: if they cannot be shown, the
 * text is shown, without an error.
 */
export const userMessageArguments = {
  type: "object",
  properties: {
    text: {
      type: "string",
      minLength: 1,
      description: "The message as Markdown; with blocks, what is shown where they cannot be",
    },
    blocks: {
      type: "array",
      minItems: 1,
      items: { type: "object", properties: { type: { type: "string" } }, required: ["type"] },
      description:
        "The message in blocks: {type: text|heading, text}, {type: code, text, language?}, {type: list, items, ordered?}, " +
        "{type: link, url, text?}, {type: table, columns, rows}",
    },
    attachments: { type: "array", items: { type: "string", minLength: 1 }, description: "References of attachments" },
  },
  required: ["text"],
  additionalProperties: false,
} as const;

const text = v.string();
const block: v.GenericSchema<unknown, ports.MessageBlock> = v.variant("type", [
  v.strictObject({ type: v.picklist(["text", "heading"]), text }),
  v.strictObject({ type: v.literal("code"), text, language: v.optional(text) }),
  v.strictObject({ type: v.literal("list"), items: v.array(text), ordered: v.optional(v.boolean()) }),
  v.strictObject({
    type: v.literal("link"),
    // Clients show it as a link.
    url: v.pipe(text, v.url(), v.regex(/^(?:https?|mailto):/i)),
    text: v.optional(text),
  }),
  v.strictObject({ type: v.literal("table"), columns: v.array(text), rows: v.array(v.array(text)) }),
]);
const shownBlocks = v.pipe(
  v.array(block),
  v.maxLength(MESSAGE_BLOCKS),
  v.check((blocks) => JSON.stringify(blocks).length <= EVENT_CHARACTERS),
);

const given = v.strictObject({
  text: v.pipe(text, v.nonEmpty()),
  blocks: v.optional(v.pipe(v.array(v.looseObject({ type: text })), v.minLength(1))),
  attachments: v.optional(
    v.pipe(v.array(v.pipe(text, v.nonEmpty(), maxCharacters(REFERENCE_LENGTH))), v.maxLength(MESSAGE_ATTACHMENTS)),
    [],
  ),
});

/** What the arguments of `SendUserMessage` say. Throws ToolArgumentsInvalid. */
export function readUserMessage(args: unknown): UserMessage {
  const parsed = v.safeParse(given, args);
  if (!parsed.success) throw new ports.ToolArgumentsInvalid("expected text, and perhaps blocks and references of attachments");
  const { text: words, blocks, attachments } = parsed.output;
  const plain = boundedText(words, EVENT_CHARACTERS);
  if (!blocks) return { message: plain, attachments };
  const shown = v.safeParse(shownBlocks, blocks);
  return shown.success ? { message: shown.output, attachments } : { text: plain, attachments };
}
