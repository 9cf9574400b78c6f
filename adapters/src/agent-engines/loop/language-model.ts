import { type AnthropicProvider, createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
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

/** One model of a provider, called through the models port. */
export function languageModel(provider: ports.ModelProvider, model: string): LanguageModel {
  const fetch = modelFetch(provider);
  if (provider.protocol === "messages") return createAnthropic({ ...NOWHERE, fetch }).languageModel(model);
  return createOpenAICompatible({ ...NOWHERE, name: "chat", fetch, includeUsage: true }).languageModel(model) as LanguageModel;
}
