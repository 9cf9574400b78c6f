import { jsonObject, type ports } from "@portico/core";
import * as v from "valibot";
import type { ModelRequest } from "../../models/call/model-request.ts";

const message = v.strictObject({
  role: v.pipe(v.picklist(["system", "user", "assistant"]), v.description("The author of the message.")),
  content: v.pipe(v.string(), v.description("The text of the message.")),
});

export const modelInput = v.strictObject({
  provider: v.optional(v.pipe(v.string(), v.description("Id of a configured provider; optional if there is exactly one."))),
  model: v.optional(v.pipe(v.string(), v.description("Default: the provider's first."))),
  prompt: v.optional(v.pipe(v.string(), v.description("The user's message: this, or `messages`."))),
  messages: v.optional(
    v.pipe(
      v.array(message),
      v.minLength(1),
      v.description("The conversation so far, instead of `prompt`: `role` (`system`, `user`, `assistant`) and `content`."),
    ),
  ),
  system: v.optional(v.pipe(v.string(), v.description("Instructions for the model."))),
  maxTokens: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(1), v.description("Maximum tokens of the answer; default: the provider's.")),
  ),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2), v.description("0 to 2; default: the provider's."))),
  output: v.optional(
    v.pipe(jsonObject, v.description("JSON Schema of the output. The output is then a value instead of a text.")),
  ),
});

export type ModelInput = v.InferOutput<typeof modelInput>;

export function promptFaults(written: Readonly<Record<string, unknown>>): ports.NodeFault[] {
  const has = (key: string) => written[key] !== undefined;
  if (has("prompt") === has("messages")) return [{ path: [], message: "A model is asked with either prompt or messages" }];
  return [];
}

export function toModelRequest({ system, prompt, messages = [], maxTokens, temperature }: ModelInput): ModelRequest {
  const said = prompt === undefined ? messages : [{ role: "user" as const, content: prompt }];
  const instructions = [
    ...(system === undefined ? [] : [system]),
    ...said.flatMap((each) => (each.role === "system" ? [each.content] : [])),
  ];
  return {
    ...(instructions.length > 0 && { system: instructions.map((text) => ({ type: "text", text })) }),
    messages: said.flatMap(({ role, content }) =>
      role === "system" ? [] : [{ role, content: [{ type: "text", text: content }] }],
    ),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
  };
}
