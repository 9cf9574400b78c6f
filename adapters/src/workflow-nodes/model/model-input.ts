import type { ports } from "@portico/core";
import * as v from "valibot";
import type { Prompt } from "../../agent-engines/loop/language-model.ts";

export const modelInput = v.strictObject({
  /** Id of a configured provider; may be left out where there is exactly one. */
  provider: v.optional(v.string()),
  /** Default: the provider's first. */
  model: v.optional(v.string()),
  /** What the user says: this, or `messages`. */
  prompt: v.optional(v.string()),
  messages: v.optional(
    v.pipe(v.array(v.strictObject({ role: v.picklist(["system", "user", "assistant"]), content: v.string() })), v.minLength(1)),
  ),
  system: v.optional(v.string()),
  maxTokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  /** JSON Schema of the output, in place of a text. */
  output: v.optional(v.record(v.string(), v.unknown())),
});

export type ModelInput = v.InferOutput<typeof modelInput>;

export function promptFaults(written: Readonly<Record<string, unknown>>): ports.NodeFault[] {
  const has = (key: string) => written[key] !== undefined;
  if (has("prompt") === has("messages")) return [{ path: [], message: "A model is asked with either prompt or messages" }];
  return [];
}

export function toModelPrompt({ system, prompt, messages = [] }: ModelInput): Prompt {
  const said = prompt === undefined ? messages : [{ role: "user" as const, content: prompt }];
  const all = system === undefined ? said : [{ role: "system" as const, content: system }, ...said];
  return all.map(({ role, content }) =>
    role === "system" ? { role, content } : { role, content: [{ type: "text" as const, text: content }] },
  );
}
