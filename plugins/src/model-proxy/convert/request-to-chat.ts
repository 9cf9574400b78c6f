import type { ports } from "@portico/core";
import type { ConvertedRequest } from "./converted-request.ts";
import { Dropped } from "./dropped.ts";
import type { JsonObject, JsonObjectDraft } from "./json.ts";
import { effortToChat } from "./request/effort.ts";
import { identityToChat } from "./request/identity.ts";
import { dropUnknown, readBoolean, readOptional } from "./request/read-field.ts";
import { samplingToChat } from "./request/sampling.ts";
import { stopSequencesToChat } from "./request/stop-sequences.ts";
import { structuredOutputToChat } from "./request/structured-output.ts";
import { tokenLimitToChat } from "./request/token-limit.ts";
import { toolChoiceToChat } from "./request/tool-choice.ts";
import { toolsToChat } from "./request/tool-definitions.ts";
import { refuseMessagesOnly } from "./request/without-counterpart.ts";
import { systemToChat } from "./turns/system-text.ts";
import { turnsToChat } from "./turns/turns-to-chat.ts";

const CONVERTED_FIELDS = new Set([
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
export function requestToChat(body: JsonObject, dialect: ports.ChatDialect): ConvertedRequest {
  const dropped = new Dropped();
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
  identityToChat(body, chat, dropped);
  const stream = readOptional(body.stream, "stream", readBoolean);
  if (stream !== undefined) chat.stream = stream;
  // Messages always reports usage; a stream of Chat Completions does so only when asked.
  if (stream && dialect.streamOptions) chat.stream_options = { include_usage: true };
  dropUnknown(body, CONVERTED_FIELDS, "", dropped);
  return { body: chat, dropped: dropped.fields };
}
