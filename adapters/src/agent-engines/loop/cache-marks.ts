import type { FunctionTool, Prompt, PromptMessage } from "./language-model.ts";

/** A provider of the Messages protocol keeps what comes before a mark, and reads it from its cache in the next call. */
const MARK = { anthropic: { cacheControl: { type: "ephemeral" } } };

/** The parts of a request to a model. */
export interface MarkedQuestion {
  readonly prompt: Prompt;
  readonly tools: readonly FunctionTool[];
}

/**
 * The same question with marks for the prompt cache of the Messages protocol: after the tools and instructions, after the messages of the call
 * before, and after the last message. `before` is the length of the prompt of the call before. A provider finds a kept beginning only up
 * to 20 blocks before a mark, and the results of one answer's calls may be more. So each call of a turn, and the first call of the
 * next turn, finds all that came before.
 */
export function markForCache({ prompt, tools }: MarkedQuestion, before: number): MarkedQuestion {
  const system = prompt.findLastIndex(({ role }) => role === "system");
  const places = new Set([system, lastMarkable(prompt, before), lastMarkable(prompt, prompt.length)]);
  return {
    prompt: prompt.map((message, at) => (places.has(at) ? { ...message, providerOptions: MARK } : message)),
    tools: system >= 0 ? tools : tools.map((tool, at) => (at === tools.length - 1 ? { ...tool, providerOptions: MARK } : tool)),
  };
}

/** The last message before `end` that can carry a mark. */
function lastMarkable(prompt: Prompt, end: number): number {
  return prompt.findLastIndex((message, at) => at < end && canCarry(message));
}

/** A part of thinking carries no mark, and a message's mark is that of its last part. */
function canCarry({ role, content }: PromptMessage): boolean {
  return role === "system" || content.at(-1)?.type !== "reasoning";
}
