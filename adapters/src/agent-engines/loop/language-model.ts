import type { AnthropicProvider } from "@ai-sdk/anthropic";

/** A model of the AI SDK's adapters. */
export type LanguageModel = ReturnType<AnthropicProvider["languageModel"]>;
/** The options of one call. */
export type CallOptions = Parameters<LanguageModel["doStream"]>[0];
export type Prompt = CallOptions["prompt"];
export type PromptMessage = Prompt[number];
export type FunctionTool = Extract<NonNullable<CallOptions["tools"]>[number], { type: "function" }>;
export type StreamPart = Awaited<ReturnType<LanguageModel["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
