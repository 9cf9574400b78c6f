import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { isAbsent } from "../request/read-field.ts";
import { BLOCK_SEPARATOR, readTexts } from "./text-parts.ts";

/** A line that a coding tool puts first. Its vendor removes the line. For other providers it would break prefix caching, because it differs per conversation. */
const BILLING_LINE = /^x-anthropic-billing-header:[^\n]*\n?/;

/** `system` of Messages becomes the first message, or no message if it is empty. A billing line at its head is left out. */
export function systemToChat(system: Json | undefined, dropped: Dropped): readonly JsonObject[] {
  if (isAbsent(system)) return [];
  const [first = "", ...others] = readTexts(system, "system", dropped);
  const kept = first.replace(BILLING_LINE, "");
  if (kept !== first) dropped.add("system.x-anthropic-billing-header");
  const text = (kept === "" ? others : [kept, ...others]).join(BLOCK_SEPARATOR);
  return text === "" ? [] : [{ role: "system", content: text }];
}

/** The instructions at the head of a Chat conversation become `system`. A single instruction without a cache mark stays a string. */
export function systemToMessages(blocks: readonly JsonObject[]): Json | undefined {
  const [only, second] = blocks;
  return second === undefined && isAbsent(only?.cache_control) ? only?.text : blocks;
}

/**
 * An instruction in the middle of a Chat conversation. Only the newest models of Messages accept a system message there. Moving it to the
 * head would apply it to earlier turns, too. So it stays at its place, as marked text in the user's turn.
 */
export function instructionInPlace(blocks: readonly JsonObject[]): JsonObject {
  const text = blocks.map((block) => block.text).join(BLOCK_SEPARATOR);
  const mark = blocks.findLast((block) => !isAbsent(block.cache_control))?.cache_control;
  return { type: "text", text: `<system>\n${text}\n</system>`, ...(mark !== undefined && { cache_control: mark }) };
}
