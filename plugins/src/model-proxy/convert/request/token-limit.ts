import type { ports } from "@portico/core";
import type { JsonObject, JsonObjectDraft } from "../json.ts";
import { readCount, readOptional } from "./read-field.ts";

/** The default limit. Messages requires a limit, and Chat Completions does not. */
export const DEFAULT_MAX_TOKENS = 8_192;
/**
 * The default limit with thinking, because thinking counts against the limit. Even the smallest current models allow it.
 */
export const DEFAULT_MAX_TOKENS_THINKING = 32_000;

/**
 * `max_tokens` becomes `max_completion_tokens`, the name in specification 4.1. For providers that know only the older name, it stays
 * `max_tokens`. Both include thinking. A limit of 0, which only fills the provider's cache, is refused.
 */
export function tokenLimitToChat(body: JsonObject, chat: JsonObjectDraft, { maxTokens }: ports.ChatDialect): void {
  const limit = readOptional(body.max_tokens, "max_tokens", readCount);
  if (limit !== undefined) chat[maxTokens] = limit;
}

/** `max_completion_tokens`, or else the older `max_tokens`, or else a default. */
export function tokenLimitToMessages(body: JsonObject, messages: JsonObjectDraft, thinking: boolean): void {
  const older = readOptional(body.max_tokens, "max_tokens", readCount);
  const limit = readOptional(body.max_completion_tokens, "max_completion_tokens", readCount) ?? older;
  messages.max_tokens = limit ?? (thinking ? DEFAULT_MAX_TOKENS_THINKING : DEFAULT_MAX_TOKENS);
}
