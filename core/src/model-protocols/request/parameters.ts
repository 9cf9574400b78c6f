import type { ChatDialect } from "../../ports/models.ts";
import { isStrictSchema } from "../is-strict-schema.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { textBlock } from "../turns/text-parts.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readBoolean,
  readCount,
  readNumber,
  readObject,
  readOptional,
  readString,
} from "./fields.ts";

/** The maximum in Messages is 1. In Chat Completions it is 2. */
const MESSAGES_TEMPERATURE = 1;
/** The range of `top_p` that Messages accepts together with thinking. */
const THINKING_TOP_P = 0.95;

/** `temperature` and `top_p` are copied. `top_k`, which Chat Completions lacks, only narrows the sampling and is dropped. */
export function samplingToChat(body: JsonObject, chat: JsonObjectDraft, dropped: Dropped): void {
  const temperature = readOptional(body.temperature, "temperature", readNumber);
  if (temperature !== undefined) chat.temperature = temperature;
  const topP = readOptional(body.top_p, "top_p", readNumber);
  if (topP !== undefined) chat.top_p = topP;
  if (readOptional(body.top_k, "top_k", readNumber) !== undefined) dropped.add("top_k");
}

/**
 * `temperature` and `top_p` are copied if thinking is off. With thinking, Messages does not accept them, and thinking has priority.
 * Penalties have no counterpart. Like `top_k`, they only adjust the sampling, so they are dropped.
 * @throws ConversionRefused for a temperature that Messages cannot express, because a clamped value would change the request.
 */
export function samplingToMessages(body: JsonObject, messages: JsonObjectDraft, thinking: boolean, dropped: Dropped): void {
  const temperature = readOptional(body.temperature, "temperature", readNumber);
  if (temperature !== undefined) {
    if (temperature < 0 || temperature > MESSAGES_TEMPERATURE) {
      throw new ConversionRefused("temperature", "this provider takes a temperature of 0 to 1");
    }
    if (!thinking || temperature === 1) messages.temperature = temperature;
    else dropped.add("temperature");
  }
  const topP = readOptional(body.top_p, "top_p", readNumber);
  if (topP !== undefined) {
    if (!thinking || topP >= THINKING_TOP_P) messages.top_p = topP;
    else dropped.add("top_p");
  }
  for (const penalty of ["frequency_penalty", "presence_penalty"]) {
    const value = readOptional(body[penalty], penalty, readNumber);
    if (value !== undefined && value !== 0) dropped.add(penalty);
  }
}

/** The default limit. Messages requires a limit, and Chat Completions does not. */
export const DEFAULT_MAX_TOKENS = 8_192;
/**
 * The default limit with thinking, because thinking counts against the limit. Even the smallest current models allow it.
 */
export const DEFAULT_MAX_TOKENS_THINKING = 32_000;

/** The limit of a request that names none. */
export function defaultMaxTokens(isThinking: boolean): number {
  return isThinking ? DEFAULT_MAX_TOKENS_THINKING : DEFAULT_MAX_TOKENS;
}

/**
 * `max_tokens` becomes `max_completion_tokens`, the name in specification 4.1. For providers that know only the older name, it stays
 * `max_tokens`. Both include thinking. A limit of 0, which only fills the provider's cache, is refused.
 */
export function tokenLimitToChat(body: JsonObject, chat: JsonObjectDraft, { maxTokens }: ChatDialect): void {
  const limit = readOptional(body.max_tokens, "max_tokens", readCount);
  if (limit !== undefined) chat[maxTokens] = limit;
}

/** `max_completion_tokens`, or else the older `max_tokens`, or else a default. */
export function tokenLimitToMessages(body: JsonObject, messages: JsonObjectDraft, thinking: boolean): void {
  const older = readOptional(body.max_tokens, "max_tokens", readCount);
  const limit = readOptional(body.max_completion_tokens, "max_completion_tokens", readCount) ?? older;
  messages.max_tokens = limit ?? defaultMaxTokens(thinking);
}

/** Maximum number in Chat Completions. */
const CHAT_STOPS = 4;

/** @throws ConversionRefused for more sequences than Chat Completions accepts, because leaving one out could make the answer longer. */
export function stopSequencesToChat(body: JsonObject, chat: JsonObjectDraft): void {
  const stops = readStops(body.stop_sequences, "stop_sequences");
  if (stops.length > CHAT_STOPS) throw new ConversionRefused("stop_sequences", `this provider takes at most ${CHAT_STOPS}`);
  if (stops.length > 0) chat.stop = stops;
}

/** @throws ConversionRefused for a sequence of only whitespace, which Messages refuses. */
export function stopSequencesToMessages(body: JsonObject, messages: JsonObjectDraft): void {
  const stops = readStops(typeof body.stop === "string" ? [body.stop] : body.stop, "stop");
  if (stops.some((stop) => stop.trim() === "")) {
    throw new ConversionRefused("stop", "this provider takes no stop sequence of whitespace alone");
  }
  if (stops.length > 0) messages.stop_sequences = stops;
}

/** An empty string has no effect, so it is left out. */
function readStops(value: Json | undefined, path: string): readonly string[] {
  if (isAbsent(value)) return [];
  return readArray(value, path)
    .map((stop, index) => readString(stop, `${path}.${index}`))
    .filter((stop) => stop !== "");
}

/** Messages has no JSON mode without a schema, so an instruction asks the model for JSON. */
const JSON_OBJECT_INSTRUCTION =
  "Answer with one valid JSON object and nothing else: no text before or after it, and no code fence around it.";

/** Chat Completions requires a name for a schema. Messages has no such name. */
const SCHEMA_NAME = "response";
const FORMAT_FIELDS = new Set(["type", "schema"]);
const RESPONSE_FORMAT_FIELDS = new Set(["type", "json_schema"]);
const JSON_SCHEMA_FIELDS = new Set(["schema", "strict"]);

/**
 * `output_config.format`, or the older top-level `output_format`. Messages always follows the schema, so `strict` is set if the schema allows it.
 */
export function structuredOutputToChat(body: JsonObject, chat: JsonObjectDraft, dropped: Dropped): void {
  const config = readOptional(body.output_config, "output_config", readObject);
  const path = isAbsent(config?.format) ? "output_format" : "output_config.format";
  const format = readOptional(config?.format ?? body.output_format, path, readObject);
  if (!format) return;
  if (format.type !== "json_schema")
    throw new ConversionRefused(`${path}.type`, `${quoteName(format.type)} has no counterpart here`);
  dropUnknown(format, FORMAT_FIELDS, `${path}.`, dropped);
  const schema = readObject(format.schema, `${path}.schema`);
  // In strict mode, vendors refuse a schema that does not keep its rules (BerriAI/litellm#38211, neurolink#1691).
  const strict = isStrictSchema(schema);
  chat.response_format = { type: "json_schema", json_schema: { name: SCHEMA_NAME, schema, strict } };
}

/**
 * A `json_schema` becomes `output_config.format`. Its name and description are dropped. A schema without `strict` becomes strict, too.
 * `json_object` becomes an instruction at the end of `system`, so that a cached prefix stays valid.
 */
export function structuredOutputToMessages(
  body: JsonObject,
  messages: JsonObjectDraft,
  outputConfig: JsonObjectDraft,
  dropped: Dropped,
): void {
  const format = readOptional(body.response_format, "response_format", readObject);
  if (!format) return;
  dropUnknown(format, RESPONSE_FORMAT_FIELDS, "response_format.", dropped);
  const type = readString(format.type, "response_format.type");
  if (type === "text") return;
  if (type === "json_object") {
    messages.system = [...systemBlocks(messages.system), textBlock(JSON_OBJECT_INSTRUCTION)];
    return;
  }
  if (type !== "json_schema") {
    throw new ConversionRefused("response_format", `this provider has no ${quoteName(type)}; give a "json_schema"`);
  }
  const named = readObject(format.json_schema, "response_format.json_schema");
  readOptional(named.strict, "response_format.json_schema.strict", readBoolean);
  dropUnknown(named, JSON_SCHEMA_FIELDS, "response_format.json_schema.", dropped);
  const schema = readObject(named.schema, "response_format.json_schema.schema");
  outputConfig.format = { type: "json_schema", schema };
}

/** The converted `system`: absent, a string, or blocks. */
function systemBlocks(system: Json | undefined): readonly Json[] {
  if (system === undefined) return [];
  return Array.isArray(system) ? (system as readonly Json[]) : [textBlock(String(system))];
}

/** Vendors of Chat Completions refuse a longer `user`, and coding assistants send longer values. */
const CHAT_USER_LENGTH = 64;
const MESSAGES_USER_LENGTH = 256;
const METADATA_FIELDS = new Set(["user_id"]);

/** `metadata.user_id` becomes `user`. It only helps to detect abuse, so a value that is too long is dropped. */
export function identityToChat(
  body: JsonObject,
  chat: JsonObjectDraft,
  { user: takesUser }: ChatDialect,
  dropped: Dropped,
): void {
  const metadata = readOptional(body.metadata, "metadata", readObject);
  if (!metadata) return;
  dropUnknown(metadata, METADATA_FIELDS, "metadata.", dropped);
  const user = readOptional(metadata.user_id, "metadata.user_id", readString);
  if (!user) return;
  if (takesUser && user.length <= CHAT_USER_LENGTH) chat.user = user;
  else dropped.add("metadata.user_id");
}

/**
 * `safety_identifier`, or else the older `user`, becomes `metadata.user_id`. The `metadata` of Chat Completions labels stored answers, and
 * is dropped.
 */
export function identityToMessages(body: JsonObject, messages: JsonObjectDraft, dropped: Dropped): void {
  const identifier = readOptional(body.safety_identifier, "safety_identifier", readString);
  const older = readOptional(body.user, "user", readString);
  const user = identifier || older;
  if (identifier && older && identifier !== older) dropped.add("user");
  if (!user) return;
  if (user.length <= MESSAGES_USER_LENGTH) messages.metadata = { user_id: user };
  else dropped.add(identifier ? "safety_identifier" : "user");
}
