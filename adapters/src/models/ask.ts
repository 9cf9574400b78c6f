import type { ports } from "@portico/core";
import { toModelError } from "../agent-engines/loop/model-error.ts";
import { openLanguageModel } from "../agent-engines/loop/open-language-model.ts";

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
  try {
    const asked = await openLanguageModel(provider, model, { source: "plugin", telemetry });
    const { content, finishReason, usage } = await asked.doGenerate({
      prompt: [
        ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
        { role: "user" as const, content: [{ type: "text" as const, text: prompt }] },
      ],
      abortSignal: signal,
      ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
      ...(temperature !== undefined && { temperature }),
    });
    return {
      text: content.flatMap((part) => (part.type === "text" ? part.text : [])).join(""),
      finish: finishOf(finishReason.unified),
      usage: { inputTokens: usage.inputTokens.total, outputTokens: usage.outputTokens.total },
    };
  } catch (error) {
    signal.throwIfAborted();
    throw toModelError(error, provider);
  }
}

const UNMEASURED: Pick<ports.Telemetry, "modelCall"> = { modelCall() {} };

async function firstModel(provider: ports.ModelProvider, signal: AbortSignal): Promise<string> {
  const [first] = await provider.listModels(signal);
  if (first === undefined) throw new TypeError(`Provider "${provider.id}" lists no models: name one in the question`);
  return first;
}

function finishOf(reason: string): ModelReply["finish"] {
  return reason === "stop" || reason === "length" ? reason : "other";
}
