import { ports } from "@portico/core";
import type { LanguageModel } from "./language-model.ts";
import { measuredModel, type ModelMeter } from "./measured-model.ts";
import { modelFetch } from "./model-fetch.ts";

/** The SDK's adapters require an address and a key. Neither leaves the process. */
const NOWHERE = { baseURL: "http://model.invalid/v1", apiKey: "none" };

/**
 * One model of a provider, called through the models port. Each call is measured. The library for its protocol is loaded at the
 * first use, so that no start waits for it.
 */
export async function openLanguageModel(provider: ports.ModelProvider, model: string, meter: ModelMeter): Promise<LanguageModel> {
  return measuredModel(await unmeasured(provider, model, () => meter.telemetry.traceparent?.()), provider, meter);
}

async function unmeasured(
  provider: ports.ModelProvider,
  model: string,
  traceparent: () => string | undefined,
): Promise<LanguageModel> {
  const fetch = modelFetch(provider, traceparent);
  if (provider.protocol === "messages") {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return createAnthropic({ ...NOWHERE, fetch }).languageModel(model);
  }
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { streamOptions: includeUsage, maxTokens } = provider.dialect ?? ports.PUBLISHED_CHAT_DIALECT;
  // The library knows only the older name, which current models of the protocol's publisher refuse.
  const transformRequestBody = ({ max_tokens, ...body }: Record<string, unknown>) =>
    max_tokens === undefined ? body : { ...body, [maxTokens]: max_tokens };
  const options = { ...NOWHERE, name: "chat", fetch, includeUsage, transformRequestBody, supportsStructuredOutputs: true };
  return createOpenAICompatible(options).languageModel(model) as LanguageModel;
}
