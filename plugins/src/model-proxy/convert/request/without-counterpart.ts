import { ConversionRefused } from "../conversion-refused.ts";
import type { Json, JsonObject } from "../json.ts";
import { isAbsent, quoteName, readArray, readObject, readOptional } from "./read-field.ts";

/** With this code, the vendor's client library automatically sends its whole history instead. */
const THREADS_UNSUPPORTED: JsonObject = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

/**
 * Refuses fields of Messages that change the answer and that Chat Completions cannot express. Fields that affect only cost, speed or
 * bookkeeping are dropped like unknown fields.
 * @throws ConversionRefused with the name of the field; for `mcp_servers`, also with the names of the servers.
 */
export function refuseMessagesOnly(body: JsonObject): void {
  const servers = readOptional(body.mcp_servers, "mcp_servers", readArray) ?? [];
  if (servers.length > 0) {
    const names = servers.map((server, index) => quoteName(readObject(server, `mcp_servers.${index}`).name));
    throw new ConversionRefused("mcp_servers", `${names.slice(0, 8).join(", ")}: only their own provider can call these servers`);
  }
  refusePresent(body, "container", "only its own provider has containers");
  if (body.inference_geo !== "global") refusePresent(body, "inference_geo", "this provider can't promise where it runs");
  if (!isAbsent(body.thread)) throw new ConversionRefused("thread", "this provider keeps no threads", THREADS_UNSUPPORTED);
}

/**
 * Refuses fields of Chat Completions that change the answer and that Messages cannot express.
 * @throws ConversionRefused with the name of the field.
 */
export function refuseChatOnly(body: JsonObject): void {
  if (!isAbsent(body.n) && body.n !== 1) throw new ConversionRefused("n", "this provider gives one answer per request");
  if (!isAbsent(body.logprobs) && body.logprobs !== false) refuse("logprobs", "this provider reports no probabilities");
  if (!isAbsent(body.top_logprobs) && body.top_logprobs !== 0) refuse("top_logprobs", "this provider reports no probabilities");
  const bias = readOptional(body.logit_bias, "logit_bias", readObject);
  if (bias && Object.keys(bias).length > 0) refuse("logit_bias", "this provider can't weigh tokens");
  const modalities = readOptional(body.modalities, "modalities", readArray) ?? [];
  if (modalities.some((modality: Json) => modality !== "text")) refuse("modalities", "this provider answers in text only");
  refusePresent(body, "audio", "this provider answers in text only");
  refusePresent(body, "web_search_options", "only its own provider can search the web");
  refusePresent(body, "moderation", "this provider has no moderation by request");
}

function refusePresent(body: JsonObject, field: string, reason: string): void {
  if (!isAbsent(body[field])) refuse(field, reason);
}

function refuse(field: string, reason: string): never {
  throw new ConversionRefused(field, reason);
}
