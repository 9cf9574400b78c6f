import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject } from "../json.ts";
import { isAbsent } from "../request/read-field.ts";
import { BLOCK_SEPARATOR, isBlank, readTexts } from "./text-parts.ts";

/** `system` of Messages as the first message, or nothing where it is empty. */
export function systemToChat(system: Json | undefined, dropped: Dropped): readonly JsonObject[] {
  if (isAbsent(system)) return [];
  const text = readTexts(system, "system", dropped).join(BLOCK_SEPARATOR);
  return text === "" ? [] : [{ role: "system", content: text }];
}

/** The instructions at the head of a Chat conversation as `system`: one stays a string, several become blocks. */
export function systemToMessages(texts: readonly string[]): Json | undefined {
  if (texts.length < 2) return texts[0];
  return texts.map((text) => ({ type: "text", text }));
}

/**
 * An instruction in the midst of a Chat conversation. Messages takes a system message there with its newest models only, and
 * hoisting it would make it hold for turns that came before it; so it stays in its place as marked text of the user's turn.
 */
export function instructionInPlace(texts: readonly string[]): string {
  const text = texts.join(BLOCK_SEPARATOR);
  return isBlank(text) ? "" : `<system>\n${text}\n</system>`;
}
