import { MESSAGES_FIELDS } from "../convert-request.ts";
import { CallIds } from "../fit/call-ids.ts";
import { ToolNames } from "../fit/tool-names.ts";
import { fitToolSchema } from "../fit/tool-schema.ts";
import { isJsonObject, type Json, type JsonObject, type JsonObjectDraft } from "../json.ts";
import { readMessagesEffort } from "../request/effort.ts";
import {
  ConversionRefused,
  Dropped,
  dropUnknown,
  isAbsent,
  readArray,
  readBoolean,
  readCount,
  readOptional,
  readString,
  refuseMessagesOnly,
} from "../request/fields.ts";
import { identityToChat, samplingToChat, structuredOutputToChat } from "../request/parameters.ts";
import { toolChoiceToChat, toolsToChat } from "../request/tools.ts";
import { PUBLISHED_CHAT_DIALECT } from "../../ports/models.ts";
import { systemToChat } from "../turns/text-parts.ts";
import { turnsToItems } from "./turns-to-items.ts";
import { isStrictSchema } from "../is-strict-schema.ts";

/** A request of the Responses API, with the facts that the reader of its answer needs. */
export interface ResponsesRequest {
  readonly body: JsonObject;
  /** Fields of the Messages request that were left out. */
  readonly dropped: readonly string[];
  /** The fields that ask for thinking. They are dropped, too, if the provider refuses it. */
  readonly thinkingFields: readonly string[];
  /** The names of tools that were replaced: the name that is sent, and the caller's name. */
  readonly toolNames: ReadonlyMap<string, string>;
  readonly isStream: boolean;
  /** The API has no stop sequences. The reader of the answer ends it there. */
  readonly stopSequences: readonly string[];
}

/** "integer_below_min_value": the vendor refuses smaller limits (QuantumNous/new-api#2866). */
const LEAST_OUTPUT_TOKENS = 16;
/** Maximum stop sequences: each is searched in the whole answer. */
const STOPS = 64;
/** Maximum characters of the name of a tool. */
const TOOL_NAME = 64;
/** Maximum characters of `call_id`: "string too long. Expected a string with maximum length 64". */
const CALL_ID = 64;

/**
 * Converts the body of a Messages request to a request of OpenAI's Responses API with the same meaning. The provider stores nothing, so its
 * reasoning comes back encrypted, and the next request returns it. `owner` is a short name for the provider, in letters and digits: only
 * reasoning that this provider gave is sent back to it. Notes take the place of images that the model does not take.
 * @throws ConversionRefused with the name of a field that is malformed, or that has no counterpart and cannot be left out.
 */
export function requestToResponses(body: JsonObject, owner: string, takesImages = true): ResponsesRequest {
  const dropped = new Dropped();
  refuseMessagesOnly(body);
  const names = new ToolNames(TOOL_NAME);
  const request: JsonObjectDraft = { model: body.model };
  const system = systemToChat(body.system, dropped)[0];
  if (system) request.instructions = system.content;
  request.input = turnsToItems(body.messages, { owner, takesImages, names, ids: new CallIds("any", CALL_ID), dropped });
  const limit = readOptional(body.max_tokens, "max_tokens", readCount);
  if (limit !== undefined) request.max_output_tokens = Math.max(limit, LEAST_OUTPUT_TOKENS);
  samplingToChat(body, request, dropped);
  toolsToResponses(body, request, names, dropped);
  const { effort, isOff, fields } = readMessagesEffort(body, dropped);
  if (isOff) request.reasoning = { effort: "none" };
  else if (effort !== undefined) request.reasoning = { effort, summary: "auto" };
  formatToResponses(body, request, dropped);
  identityToResponses(body, request, dropped);
  request.store = false;
  request.include = ["reasoning.encrypted_content"];
  const isStream = readOptional(body.stream, "stream", readBoolean) ?? false;
  if (isStream) request.stream = true;
  dropUnknown(body, MESSAGES_FIELDS, "", dropped);
  return {
    body: request,
    dropped: dropped.fields,
    thinkingFields: fields,
    toolNames: names.originals,
    isStream,
    stopSequences: readStops(body.stop_sequences),
  };
}

function readStops(value: Json | undefined): readonly string[] {
  const stops = (readOptional(value, "stop_sequences", readArray) ?? [])
    .map((stop, index) => readString(stop, `stop_sequences.${index}`))
    .filter((stop) => stop !== "");
  if (stops.length > STOPS) throw new ConversionRefused("stop_sequences", `this provider takes at most ${STOPS}`);
  return stops;
}

/**
 * Function tools in the API's flat form. `strict` is always written: if it is absent, the API makes every property required
 * (0xPlaygrounds/rig#2477).
 */
function toolsToResponses(body: JsonObject, request: JsonObjectDraft, names: ToolNames, dropped: Dropped): void {
  toolChoiceToChat(body, request, toolsToChat(body, dropped), dropped);
  const { tools, tool_choice: choice } = request;
  if (tools === undefined) return;
  request.tools = (tools as readonly JsonObject[]).map((tool) => {
    const { name, description, parameters: stated, strict } = tool.function as JsonObject;
    const parameters = fitToolSchema(stated) as JsonObject;
    // Strict schemas of Messages may have optional properties, which the vendor refuses.
    const isLoose = strict === true && !isStrictSchema(parameters);
    if (isLoose) dropped.add("tools.strict");
    return {
      type: "function",
      name: names.accepted(name) as string,
      ...(description !== undefined && { description }),
      parameters,
      strict: strict === true && !isLoose,
    };
  });
  if (isJsonObject(choice) && isJsonObject(choice.function))
    request.tool_choice = { type: "function", name: names.accepted(choice.function.name) as string };
}

function formatToResponses(body: JsonObject, request: JsonObjectDraft, dropped: Dropped): void {
  const chat: JsonObjectDraft = {};
  structuredOutputToChat(body, chat, dropped);
  if (!isJsonObject(chat.response_format)) return;
  const { name, schema } = chat.response_format.json_schema as JsonObject;
  request.text = { format: { type: "json_schema", name, schema, strict: isStrictSchema(schema) } };
}

function identityToResponses(body: JsonObject, request: JsonObjectDraft, dropped: Dropped): void {
  const chat: JsonObjectDraft = {};
  identityToChat(body, chat, PUBLISHED_CHAT_DIALECT, dropped);
  if (chat.user !== undefined) request.safety_identifier = chat.user;
}

/** A part of a request that a provider refused, and without which the request keeps its meaning. */
export type RefusedPart =
  | "encrypted-reasoning"
  | "include"
  | "reasoning.summary"
  | "reasoning"
  | "temperature"
  | "top_p"
  | "safety_identifier"
  | "max_output_tokens";

/** The caller's fields, by part. No caller asks for `include`. */
const DROPPED_WITH: Readonly<Record<RefusedPart, readonly string[]>> = {
  "encrypted-reasoning": ["messages.content.thinking"],
  include: [],
  "reasoning.summary": ["thinking.display"],
  reasoning: [],
  temperature: ["temperature"],
  top_p: ["top_p"],
  safety_identifier: ["metadata.user_id"],
  max_output_tokens: ["max_tokens"],
};

/** The request without a part that was refused. Undefined if the request does not have it. */
export function withoutRefused(request: ResponsesRequest, part: RefusedPart): ResponsesRequest | undefined {
  const body: JsonObjectDraft = { ...request.body };
  if (part === "encrypted-reasoning") {
    const items = Array.isArray(body.input) ? (body.input as readonly JsonObject[]) : [];
    if (!items.some(({ type }) => type === "reasoning")) return undefined;
    // Without its reasoning the vendor refuses the id of a message, too: continuedev/continue#11994.
    body.input = items.filter(({ type }) => type !== "reasoning").map(({ id: _id, ...item }) => item);
  } else if (part === "reasoning.summary") {
    if (!isJsonObject(body.reasoning) || isAbsent(body.reasoning.summary)) return undefined;
    body.reasoning = { effort: body.reasoning.effort };
  } else {
    if (body[part] === undefined) return undefined;
    delete body[part];
  }
  const fields = part === "reasoning" ? request.thinkingFields : DROPPED_WITH[part];
  return { ...request, body, dropped: [...new Set([...request.dropped, ...fields])] };
}
