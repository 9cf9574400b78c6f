import type { ports } from "@portico/core";
import type { JsonObject, JsonObjectDraft } from "../json.ts";
import { readCount, readOptional } from "./read-field.ts";

/** Messages requires a limit and Chat Completions doesn't: what a caller without one gets. */
export const DEFAULT_MAX_TOKENS = 8_192;
/**
 * The same where the model is to think first, since thinking counts against the limit; the smallest of current models still
 * allow it.
 */
export const DEFAULT_MAX_TOKENS_THINKING = 32_000;

/**
 * `max_tokens` becomes `max_completion_tokens`, the name that the specification's 4.1 gives, or stays `max_tokens` for a provider
 * that knows the older name alone; both count thinking in. A limit of 0, which only warms the provider's cache, is refused.
 */
export function tokenLimitToChat(body: JsonObject, chat: JsonObjectDraft, { maxTokens }: ports.ChatDialect): void {
  const limit = readOptional(body.max_tokens, "max_tokens", readCount);
  if (limit !== undefined) chat[maxTokens] = limit;
}

/** `max_completion_tokens`, else the older `max_tokens`, else a default. */
export function tokenLimitToMessages(body: JsonObject, messages: JsonObjectDraft, thinking: boolean): void {
  const older = readOptional(body.max_tokens, "max_tokens", readCount);
  const limit = readOptional(body.max_completion_tokens, "max_completion_tokens", readCount) ?? older;
  messages.max_tokens = limit ?? (thinking ? DEFAULT_MAX_TOKENS_THINKING : DEFAULT_MAX_TOKENS);
}
