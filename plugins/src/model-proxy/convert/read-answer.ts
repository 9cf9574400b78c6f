import { gatherEvents } from "./answer/answer-reader.ts";
import { ChatAnswer } from "./answer/chat-answer.ts";
import { MessagesAnswer } from "./answer/messages-answer.ts";
import type { JsonObject } from "./json.ts";
import type { ModelEvent } from "./model-events.ts";

/**
 * Reads the whole answer of an upstream that speaks Chat Completions. An error, or an answer without a message, ends with an
 * `error` event.
 */
export function readChatCompletion(body: JsonObject): readonly ModelEvent[] {
  const gathered = gatherEvents();
  gathered.attempt(() => new ChatAnswer(gathered.emit).readWhole(body));
  return gathered.drain();
}

/**
 * Reads the whole answer of an upstream that speaks Messages. An error, or an answer without content, ends with an `error` event.
 */
export function readMessage(body: JsonObject): readonly ModelEvent[] {
  const gathered = gatherEvents();
  gathered.attempt(() => new MessagesAnswer(gathered.emit).readWhole(body));
  return gathered.drain();
}
