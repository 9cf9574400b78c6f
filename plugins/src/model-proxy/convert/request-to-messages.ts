import type { ConvertedRequest } from "./converted-request.ts";
import { Dropped } from "./dropped.ts";
import type { JsonObject, JsonObjectDraft } from "./json.ts";
import { readCacheMark } from "./request/cache-mark.ts";
import { effortToMessages } from "./request/effort.ts";
import { identityToMessages } from "./request/identity.ts";
import { dropUnknown, readBoolean, readObject, readOptional } from "./request/read-field.ts";
import { samplingToMessages } from "./request/sampling.ts";
import { stopSequencesToMessages } from "./request/stop-sequences.ts";
import { structuredOutputToMessages } from "./request/structured-output.ts";
import { tokenLimitToMessages } from "./request/token-limit.ts";
import { toolChoiceToMessages } from "./request/tool-choice.ts";
import { toolsToMessages } from "./request/tool-definitions.ts";
import { refuseChatOnly } from "./request/without-counterpart.ts";
import { turnsToMessages } from "./turns/turns-to-messages.ts";

/** Known fields: fields that are converted, fields that are refused unless they have no effect, and `stream_options`, which the answer obeys. */
const CONVERTED_FIELDS = new Set([
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
  dropUnknown(body, CONVERTED_FIELDS, "", dropped);
  return { body: messages, dropped: dropped.fields };
}
