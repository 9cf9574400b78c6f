import type { ports } from "@portico/core";
import { type FinishReason, mergeUsage, type Usage } from "@portico/core/model-protocols";
import { inputTokensOf } from "./call/counted-calls.ts";
import { openModel } from "./call/open-model.ts";

/** What `ask` sends to a provider. */
export interface ModelQuestion {
  /** Default: the first model that the provider lists. */
  readonly model?: string;
  /** Instructions, sent before the prompt. */
  readonly system?: string;
  readonly prompt: string;
  /** Maximum tokens of the answer. Default: the provider's. */
  readonly maxTokens?: number;
  /** 0 to 2. Default: the provider's. */
  readonly temperature?: number;
  /** Counts the call in metrics and spans, with the source `plugin`. Default: the call is not measured. */
  readonly telemetry?: Pick<ports.Telemetry, "modelCall"> & Partial<Pick<ports.Telemetry, "traceparent">>;
}

/** What `ask` resolves with. */
export interface ModelReply {
  readonly text: string;
  /** `length`: the answer reached `maxTokens` and is cut. */
  readonly finish: "stop" | "length" | "other";
  /** The provider's count of tokens; undefined if the provider sends no count. */
  readonly usage: { readonly inputTokens: number | undefined; readonly outputTokens: number | undefined };
}

/**
 * Asks a model one question and returns the whole answer. Works with providers of both protocols. When `signal` aborts, the call is
 * aborted and `ask` rejects with the signal's reason. Rejects with ModelUnreachable or ModelTimeout of the port, and with ModelRefused
 * (`status`, `isPassing`, `retryAfterMs`) if the provider answers with an error. No message contains the credential.
 */
export async function ask(provider: ports.ModelProvider, question: ModelQuestion, signal: AbortSignal): Promise<ModelReply> {
  const { system, prompt, maxTokens, temperature, telemetry = UNMEASURED } = question;
  signal.throwIfAborted();
  const model = question.model ?? (await firstModel(provider, signal));
  const asked = openModel(provider, model, { source: "plugin", telemetry });
  const request = {
    ...(system !== undefined && { system }),
    messages: [{ role: "user" as const, content: [{ type: "text", text: prompt }] }],
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
  };
  let text = "";
  let usage: Usage | undefined;
  let reason: FinishReason | undefined;
  for await (const events of asked.ask(request, { stream: false }, signal)) {
    for (const event of events) {
      if (event.type === "text") text += event.text;
      if (event.type === "usage" || event.type === "start") usage = mergeUsage(usage, event.usage);
      if (event.type === "finish") reason = event.reason;
    }
  }
  return { text, finish: finishOf(reason), usage: { inputTokens: inputTokensOf(usage), outputTokens: usage?.output } };
}

const UNMEASURED: Pick<ports.Telemetry, "modelCall"> = { modelCall() {} };

async function firstModel(provider: ports.ModelProvider, signal: AbortSignal): Promise<string> {
  const [first] = await provider.listModels(signal);
  if (first === undefined) throw new TypeError(`Provider "${provider.id}" lists no models: name one in the question`);
  return first;
}

function finishOf(reason: FinishReason | undefined): ModelReply["finish"] {
  if (reason === "end" || reason === "stop-sequence") return "stop";
  return reason === "length" ? "length" : "other";
}
