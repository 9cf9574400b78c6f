import type { MessageCreateParams, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParams,
  ChatCompletionMessageParam,
} from "openai/resources/chat/completions";
import { ports } from "@portico/core";
import { expect } from "vitest";
import { ConversionRefused } from "../../../core/src/model-protocols/request/fields.ts";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { requestToChat, requestToMessages } from "../../../core/src/model-protocols/convert-request.ts";

/** Expected fields of either protocol, checked against the official clients' own types. */
export type ChatFields = Partial<ChatCompletionCreateParams>;
export type MessagesFields = Partial<MessageCreateParams>;
export type ChatMessage = ChatCompletionMessageParam & { reasoning_content?: string; reasoning_details?: readonly object[] };
export type ChatPart = ChatCompletionContentPart;
export type MessagesTurn = MessageParam;

/** A request of each protocol that says only what it must. */
const ASKED: JsonObject = { model: "m", messages: [{ role: "user", content: "hi" }] };
const MESSAGES_ASKED: JsonObject = { ...ASKED, max_tokens: 9 };

/** What a Messages request with these fields becomes, for a provider that takes everything but what `dialect` says. */
export function toChat(
  fields: JsonObject,
  dialect: Partial<ports.ChatDialect> = {},
): { body: JsonObject; dropped: readonly string[] } {
  return requestToChat({ ...MESSAGES_ASKED, ...fields }, { ...ports.PUBLISHED_CHAT_DIALECT, ...dialect });
}

/** What a Chat Completions request with these fields becomes. */
export function toMessages(fields: JsonObject): { body: JsonObject; dropped: readonly string[] } {
  return requestToMessages({ ...ASKED, ...fields });
}

/** The Chat messages that these Messages turns become. */
export function chatMessages(...messages: JsonObject[]): unknown {
  return toChat({ messages }).body.messages;
}

/** The Messages turns that these Chat messages become. */
export function messagesTurns(...messages: JsonObject[]): unknown {
  return toMessages({ messages }).body.messages;
}

/** The one user message's content, after conversion, of these parts. */
export function chatContent(...content: JsonObject[]): unknown {
  const [message] = toChat({ messages: [{ role: "user", content }] }).body.messages as JsonObject[];
  return message?.content;
}

export function messagesContent(...content: JsonObject[]): unknown {
  const [message] = toMessages({ messages: [{ role: "user", content }] }).body.messages as JsonObject[];
  return message?.content;
}

/** Runs what must be refused, and gives the refusal. */
export function refusal(run: () => unknown): ConversionRefused {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ConversionRefused);
    return error as ConversionRefused;
  }
  return expect.fail("was not refused");
}
