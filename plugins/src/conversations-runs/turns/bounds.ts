import type { ports } from "@portico/core";
import { EVENT_CHARACTERS, STORED_MESSAGE_CHARACTERS, RECEIPT_ARGUMENTS_CHARACTERS } from "../limits.ts";
import type { RecordedCall } from "./recorded-call.ts";

/** Truncates a text to this number of characters, with a note if it was truncated. `all`: its characters, if it is a part of a longer text. */
export function boundedText(text: string, most: number, all: number = text.length): string {
  return Math.max(text.length, all) <= most ? text : `${text.slice(0, most).toWellFormed()}… [cut: ${all} characters in all]`;
}

/** A value as JSON stores it, or a note instead of a value that is too long. */
export function boundedValue(value: unknown, most: number): unknown {
  const length = JSON.stringify(value)?.length ?? 0;
  return length <= most ? value : `[left out: ${length} characters of JSON]`;
}

/**
 * A tool's result that fits into one event: clients get what a connection can carry at once. Images that do not fit become notes, long texts
 * are cut.
 */
export function boundedResult(result: ports.ToolResult, most: number = EVENT_CHARACTERS): ports.ToolResult {
  if (JSON.stringify(result).length <= most) return result;
  const share = Math.floor(most / 2 / Math.max(result.content.length, 1));
  return { ...result, content: result.content.map((part) => boundedContent(part, share)) };
}

/** A message that a conversation can keep: a log's entry has an end. */
export function boundedMessage(message: ports.ConversationMessage): ports.ConversationMessage {
  if (JSON.stringify(message).length <= STORED_MESSAGE_CHARACTERS) return message;
  const share = Math.floor(STORED_MESSAGE_CHARACTERS / 2 / Math.max(message.parts.length, 1));
  return { ...message, parts: message.parts.map((part) => boundedPart(part, share)) };
}

/** A turn's tool calls as its receipt keeps them: all of them, and the arguments and comments of as many as fit. */
export function boundedCalls(calls: readonly RecordedCall[]): readonly RecordedCall[] {
  let left = RECEIPT_ARGUMENTS_CHARACTERS;
  const fitting = (value: unknown): unknown => {
    if (value === undefined) return undefined;
    const bounded = boundedValue(value, Math.max(left, 0));
    left -= JSON.stringify(bounded)?.length ?? 0;
    return bounded;
  };
  return calls.map((call) => ({
    ...call,
    arguments: fitting(call.arguments),
    proposed: fitting(call.proposed),
    ...(call.decision?.comment !== undefined && {
      decision: { ...call.decision, comment: fitting(call.decision.comment) as string },
    }),
  }));
}

function boundedPart(part: ports.MessagePart, most: number): ports.MessagePart {
  if (JSON.stringify(part).length <= most) return part;
  switch (part.type) {
    case "text":
    case "summary":
      return { ...part, text: boundedText(part.text, most) };
    case "thinking":
      // A signature belongs to the whole text: cut, the model would refuse it.
      return { type: "text", text: boundedText(part.text, most) };
    case "media":
      return { type: "text", text: `[left out: ${part.mediaType}, ${part.data.length} characters]` };
    case "tool_call":
      return { ...part, arguments: {}, decision: undefined };
    case "tool_result":
      return { ...part, result: boundedResult(part.result, most) };
  }
}

function boundedContent(part: ports.ToolContent, most: number): ports.ToolContent {
  if (part.type === "text") return { type: "text", text: boundedText(part.text, most) };
  if (part.data.length <= most) return part;
  return { type: "text", text: `[image left out: ${part.mimeType}, ${part.data.length} characters]` };
}
