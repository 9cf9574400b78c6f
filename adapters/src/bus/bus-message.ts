import { ports } from "@portico/core";
import { checkName, toJsonText } from "../engine/work-text.ts";

/** The port's rule for topics. Throws TypeError. */
export function checkTopic(topic: string): string {
  return checkName("A topic", topic);
}

/** A message as JSON; undefined if it is too large. Throws TypeError if it is not JSON. The error does not contain the message. */
export function toMessageText(message: unknown): string | undefined {
  const text = toJsonText("A message", message);
  if (text === undefined) throw new TypeError("A message is not JSON");
  // Most messages are small: one character takes at most three bytes.
  const isTooLarge = text.length > ports.BUS_MESSAGE_BYTES / 3 && Buffer.byteLength(text) > ports.BUS_MESSAGE_BYTES;
  return isTooLarge ? undefined : text;
}
