import { ports } from "@portico/core";
import { fitChatRequest, fitMessagesRequest } from "@portico/core/model-protocols";
import type { LanguageModel } from "./language-model.ts";
import { measuredModel, type ModelMeter } from "./measured-model.ts";
import { modelFetch } from "./model-fetch.ts";

/** The name under which the library for Chat Completions gives and takes what is a vendor's own. */
export const CHAT_PROVIDER = "chat";

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
  if (provider.protocol === "messages") {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    const fetch = modelFetch(provider, traceparent, (body) => JSON.stringify(fitMessagesRequest(JSON.parse(body)).body));
    return createAnthropic({ ...NOWHERE, fetch }).languageModel(model);
  }
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const fetch = modelFetch(provider, traceparent, (body) => body);
  const dialect = provider.dialect ?? ports.PUBLISHED_CHAT_DIALECT;
  const { streamOptions: includeUsage, maxTokens } = dialect;
  const transformRequestBody = ({ max_tokens, ...body }: Record<string, unknown>) => {
    // The library knows only the older name, which current models of the protocol's publisher refuse.
    const limited = max_tokens === undefined ? body : { ...body, [maxTokens]: max_tokens };
    return { ...fitChatRequest(limited, dialect).body };
  };
  const options = { ...NOWHERE, name: CHAT_PROVIDER, fetch, includeUsage, transformRequestBody, supportsStructuredOutputs: true };
  return createOpenAICompatible(options).languageModel(model) as LanguageModel;
}
