import type { ModelFacts, ModelProtocol } from "../ports/models.ts";
import { requestToChat, requestToMessages } from "./convert-request.ts";
import { fitChatRequest } from "./fit/fit-chat-request.ts";
import { fitMessagesRequest } from "./fit/fit-messages-request.ts";
import type { JsonRecord } from "./fit/fitted-request.ts";
import type { JsonObject } from "./json.ts";
import { PUBLISHED_CHAT_DIALECT } from "../ports/models.ts";

/** A request as it is sent to a provider. */
export interface WrittenRequest {
  readonly body: JsonRecord;
  /** The names of tools that were replaced: the name that is sent, and the caller's name, which the answer must have. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** What was left out, as the header `x-portico-dropped` names it. */
  readonly dropped: readonly string[];
  /** Stop sequences that the provider does not take. The reader of the answer ends it there. */
  readonly stopSequences: readonly string[];
}

/**
 * Writes a request for a model: converted to the protocol of its provider if need be, made valid by what is known of the model, and with the
 * parameters that are set for it.
 * @throws ConversionRefused if the request cannot be expressed in the provider's protocol.
 */
export function writeRequest(from: ModelProtocol, body: JsonObject, to: ModelProtocol, facts: ModelFacts): WrittenRequest {
  const { body: converted, dropped } = from === to ? { body, dropped: [] } : convert(body, to, facts);
  const fitted = to === "messages" ? fitMessagesRequest(converted, facts) : fitChatRequest(converted, facts);
  return {
    body: withParameters(fitted.body, facts),
    toolNames: fitted.toolNames,
    dropped: [...new Set([...dropped, ...fitted.dropped])],
    stopSequences: fitted.stopSequences ?? [],
  };
}

function convert(body: JsonObject, to: ModelProtocol, { chat = PUBLISHED_CHAT_DIALECT }: ModelFacts) {
  return to === "messages" ? requestToMessages(body) : requestToChat(body, chat);
}

/** Whether a request to this model is changed, also one that its caller wrote in the provider's protocol. */
export function hasParameters({ upstream, parameters }: ModelFacts): boolean {
  return upstream !== undefined || parameters !== undefined;
}

/** The request with the model's name as it is sent, and with the parameters that are set for the model. */
export function withParameters(body: JsonRecord, { upstream, parameters = {} }: ModelFacts): JsonRecord {
  const { defaults = {}, fixed = {} } = parameters;
  const written: Record<string, unknown> = { ...body, ...(upstream !== undefined && { model: upstream }) };
  for (const [field, value] of Object.entries(defaults)) written[field] ??= value;
  for (const [field, value] of Object.entries(fixed)) {
    if (value === null) delete written[field];
    else written[field] = value;
  }
  return written;
}
