import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { JsonObject, JsonObjectDraft } from "../json.ts";
import { readNumber, readOptional } from "./read-field.ts";

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
