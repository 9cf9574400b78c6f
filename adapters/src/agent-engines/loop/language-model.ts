import type { AnthropicProvider } from "@ai-sdk/anthropic";
import type { ports } from "@portico/core";
import { modelFetch } from "./model-fetch.ts";

/** A model as the AI SDK's adapters speak with it. */
export type LanguageModel = ReturnType<AnthropicProvider["languageModel"]>;
type CallOptions = Parameters<LanguageModel["doStream"]>[0];
export type Prompt = CallOptions["prompt"];
export type PromptMessage = Prompt[number];
export type FunctionTool = Extract<NonNullable<CallOptions["tools"]>[number], { type: "function" }>;
export type StreamPart = Awaited<ReturnType<LanguageModel["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

/** The adapters build addresses and demand a key; neither ever leaves the process. */
const NOWHERE = { baseURL: "http://model.invalid/v1", apiKey: "none" };

/** One model of a provider, called through the models port. What speaks its protocol is loaded with the first: no start waits for it. */
export async function languageModel(provider: ports.ModelProvider, model: string): Promise<LanguageModel> {
  const fetch = modelFetch(provider);
  if (provider.protocol === "messages") {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return createAnthropic({ ...NOWHERE, fetch }).languageModel(model);
  }
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return createOpenAICompatible({ ...NOWHERE, name: "chat", fetch, includeUsage: true }).languageModel(model) as LanguageModel;
}
