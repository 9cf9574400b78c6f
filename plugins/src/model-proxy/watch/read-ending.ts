import { mergeUsage, readChatUsage, readMessagesUsage } from "../convert/answer/usage.ts";
import { isJsonObject, type Json, type JsonObject } from "../convert/json.ts";
import type { Usage } from "../convert/model-events.ts";
import type { Protocol } from "../protocol.ts";
import type { EdgeTexts } from "./answer-edges.ts";

/** The end of an answer, as its last bytes show it. */
export interface AnswerEnding {
  readonly usage: Usage | undefined;
  /** `whole`: it ended as its protocol requires; `error`: it ended with an error from the upstream; `open`: it did not end. */
  readonly state: "whole" | "error" | "open";
}

/** Number of last characters of a stream that are searched for its end. */
const END_CHARACTERS = 4 * 1024;
/** The end marker of Chat Completions, with the lines around it. */
const DONE_CHARACTERS = 64;
/** Maximum places that are tried before usage counts as not reported. */
const MOST_TRIES = 8;
const USAGE = '"usage"';

/**
 * Reads the end of a stream so far. The searched names include their quotes. JSON escapes quotes inside strings, so text of the model never
 * matches.
 */
export function readStreamEnding(protocol: Protocol, { head, tail }: EdgeTexts): AnswerEnding {
  if (protocol === "chat-completions")
    return { usage: lastUsage(tail, ({ usage }) => readChatUsage(usage)), state: chatState(tail.slice(-END_CHARACTERS)) };
  const state = messagesState(tail);
  const last = lastUsage(tail, ({ type, usage }) => (type === "message_delta" ? readMessagesUsage(usage) : undefined));
  const first = firstUsage(head);
  // The first event has a preliminary output count. It is used only if a complete stream reports no other count.
  return { usage: mergeUsage(state === "whole" ? first : first && { ...first, output: undefined }, last), state };
}

/** Reads the end of a whole answer in JSON. */
export function readWholeEnding(protocol: Protocol, { tail }: EdgeTexts): AnswerEnding {
  const read = protocol === "messages" ? readMessagesUsage : readChatUsage;
  for (const at of placesFromEnd(tail)) {
    // From a member of the outermost object on, the text closes exactly one brace, so with one opening brace it is a valid object.
    const rest = parsed(`{${tail.slice(at)}`);
    if (rest) return { usage: read(rest.usage), state: "whole" };
  }
  return { usage: undefined, state: "whole" };
}

/** Searches for a normal end first, because other ends are rare and take longer to find. */
function messagesState(tail: string): AnswerEnding["state"] {
  if (tail.lastIndexOf('"message_stop"') >= 0) return "whole";
  const end = tail.slice(-END_CHARACTERS);
  return /^event:\s*error\b/m.test(end) || /^data:\s*\{\s*"type"\s*:\s*"error"/m.test(end) ? "error" : "open";
}

function chatState(end: string): AnswerEnding["state"] {
  const isTold = end.includes('"error"');
  if (isTold && (/^data:\s*\{\s*"error"\s*:/m.test(end) || /"finish_reason"\s*:\s*"error"/.test(end))) return "error";
  return /^data:\s*\[DONE\]/m.test(end.slice(-DONE_CHARACTERS)) || /"finish_reason"\s*:\s*"/.test(end) ? "whole" : "open";
}

/** Usage of the last event that has some. Counts are cumulative in both protocols. */
function lastUsage(tail: string, read: (event: JsonObject) => Usage | undefined): Usage | undefined {
  for (const at of placesFromEnd(tail)) {
    const event = eventAround(tail, at);
    const usage = event && read(event);
    if (usage) return usage;
  }
  return undefined;
}

/** Usage of a Messages stream's first event. */
function firstUsage(head: string): Usage | undefined {
  const at = head.indexOf(USAGE);
  const event = at < 0 ? undefined : eventAround(head, at);
  return event?.type === "message_start" && isJsonObject(event.message) ? readMessagesUsage(event.message.usage) : undefined;
}

function* placesFromEnd(text: string): Generator<number> {
  let at = text.length;
  for (let tries = 0; tries < MOST_TRIES && at > 0; tries += 1) {
    at = text.lastIndexOf(USAGE, at - 1);
    if (at < 0) return;
    yield at;
  }
}

/** The event whose data line contains this place. */
function eventAround(text: string, at: number): JsonObject | undefined {
  const from = text.lastIndexOf("\n", at) + 1;
  const to = text.indexOf("\n", at);
  const line = text.slice(from, to < 0 ? text.length : to);
  return line.startsWith("data:") ? parsed(line.slice("data:".length)) : undefined;
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
