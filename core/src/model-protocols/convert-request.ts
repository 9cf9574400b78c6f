import type { ChatDialect } from "../ports/models.ts";
import type { JsonObject, JsonObjectDraft } from "./json.ts";
import { readCacheMark } from "./request/cache-mark.ts";
import { effortToChat, effortToMessages } from "./request/effort.ts";
import {
  type ConvertedRequest,
  Dropped,
  dropUnknown,
  readBoolean,
  readObject,
  readOptional,
  refuseChatOnly,
  refuseMessagesOnly,
} from "./request/fields.ts";
import {
  identityToChat,
  identityToMessages,
  samplingToChat,
  samplingToMessages,
  stopSequencesToChat,
  stopSequencesToMessages,
  structuredOutputToChat,
  structuredOutputToMessages,
  tokenLimitToChat,
  tokenLimitToMessages,
} from "./request/parameters.ts";
import { toolChoiceToChat, toolChoiceToMessages, toolsToChat, toolsToMessages } from "./request/tools.ts";
import { systemToChat } from "./turns/text-parts.ts";
import { turnsToChat } from "./turns/turns-to-chat.ts";
import { turnsToMessages } from "./turns/turns-to-messages.ts";

/** The fields of a Messages request that conversions read. */
export const MESSAGES_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "stop_sequences",
  "stream",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
  "metadata",
]);

/**
 * Converts the body of a Messages request to a Chat Completions request with the same meaning, for a provider of this
 * dialect. Strings, schemas and image data are shared with `body`, not copied.
 * @throws ConversionRefused with the name of a field that is malformed, or that has no counterpart and cannot be left out.
 */
export function requestToChat(body: JsonObject, dialect: ChatDialect): ConvertedRequest {
  const dropped = new Dropped({ keepsCacheMarks: dialect.cacheMarks });
  refuseMessagesOnly(body);
  const tools = toolsToChat(body, dropped);
  const messages = [...systemToChat(body.system, dropped), ...turnsToChat(body.messages, dialect, dropped)];
  const chat: JsonObjectDraft = { model: body.model, messages };
  tokenLimitToChat(body, chat, dialect);
  samplingToChat(body, chat, dropped);
  stopSequencesToChat(body, chat);
  toolChoiceToChat(body, chat, tools, dropped);
  effortToChat(body, chat, dialect, dropped);
  structuredOutputToChat(body, chat, dropped);
  identityToChat(body, chat, dialect, dropped);
  const stream = readOptional(body.stream, "stream", readBoolean);
  if (stream !== undefined) chat.stream = stream;
  // Messages always reports usage; a stream of Chat Completions does so only when asked.
  if (stream && dialect.streamOptions) chat.stream_options = { include_usage: true };
  dropUnknown(body, MESSAGES_FIELDS, "", dropped);
  return { body: chat, dropped: dropped.fields };
}

/** Known fields: fields that are converted, fields that are refused unless they have no effect, and `stream_options`, which the answer obeys. */
const CHAT_FIELDS = new Set([
  "model",
  "messages",
  "max_completion_tokens",
  "max_tokens",
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "stop",
  "stream",
  "stream_options",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call",
  "reasoning_effort",
  "reasoning",
  "cache_control",
  "response_format",
  "user",
  "safety_identifier",
  "n",
  "logprobs",
  "top_logprobs",
  "logit_bias",
  "modalities",
]);

/**
 * Converts the body of a Chat Completions request to a Messages request with the same meaning. Strings, schemas and
 * image data are shared with `body`, not copied.
 * @throws ConversionRefused with the name of a field that is malformed, or that has no counterpart and cannot be left out.
 */
export function requestToMessages(body: JsonObject): ConvertedRequest {
  const dropped = new Dropped();
  refuseChatOnly(body);
  const tools = toolsToMessages(body, dropped);
  const turns = turnsToMessages(body.messages, dropped);
  const messages: JsonObjectDraft = { model: body.model, ...turns };
  const outputConfig: JsonObjectDraft = {};
  const thinking = effortToMessages(body, messages, outputConfig, dropped);
  structuredOutputToMessages(body, messages, outputConfig, dropped);
  if (Object.keys(outputConfig).length > 0) messages.output_config = outputConfig;
  tokenLimitToMessages(body, messages, thinking);
  samplingToMessages(body, messages, thinking, dropped);
  stopSequencesToMessages(body, messages);
  toolChoiceToMessages(body, messages, tools);
  identityToMessages(body, messages, dropped);
  const mark = readOptional(body.cache_control, "cache_control", (value, path) => readCacheMark(value, path, dropped));
  if (mark) messages.cache_control = mark;
  const stream = readOptional(body.stream, "stream", readBoolean);
  if (stream !== undefined) messages.stream = stream;
  readOptional(body.stream_options, "stream_options", readObject);
  dropUnknown(body, CHAT_FIELDS, "", dropped);
  return { body: messages, dropped: dropped.fields };
}
