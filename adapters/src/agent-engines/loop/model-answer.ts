import { parseJson, ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import type { StreamPart } from "./language-model.ts";
import { AnswerBroken } from "./model-refused.ts";
import { CHAT_PROVIDER } from "./open-language-model.ts";

/** The result of one model call, as a durable step stores it. */
export interface ModelAnswer {
  readonly parts: readonly ports.MessagePart[];
  /** Tool calls in order. `arguments` is undefined if they were not a JSON object. */
  readonly calls: readonly {
    readonly callId: string;
    readonly name: string;
    readonly arguments?: unknown;
    readonly signature?: string;
  }[];
  readonly usage: Omit<ports.TurnUsage, "modelCalls">;
  /** Why the provider cut the answer. Absent if the model stopped by itself. */
  readonly cut?: AnswerCut | undefined;
}

/** `context_full`: the context window is full, so a further request cannot help. */
export type AnswerCut = "max_tokens" | "context_full" | "refusal" | "content_filter";

type FinishReason = Extract<StreamPart, { type: "finish" }>["finishReason"];

/** Assembles the pieces of a streamed answer. */
export class AnswerInProgress {
  readonly #parts: ports.MessagePart[] = [];
  readonly #calls: ModelAnswer["calls"][number][] = [];
  /** Tool calls that have begun. */
  #begun = 0;
  #thinking: { text: string; signature?: string; redacted?: string } | undefined;
  #text: { text: string } | undefined;
  #usage: ModelAnswer["usage"] = {};
  #finished: FinishReason | undefined;

  /** Takes the next piece. Throws AnswerBroken at the first tool call that is too many. */
  take(part: StreamPart): Extract<ports.Saying, { delta: string }> | undefined {
    switch (part.type) {
      case "text-start":
        this.#text = { text: "" };
        return undefined;
      case "text-delta":
        if (this.#text) this.#text.text += part.delta;
        return part.delta === "" ? undefined : { type: "text", delta: part.delta };
      case "text-end":
        this.#endText();
        return undefined;
      case "reasoning-start":
        this.#thinking = { text: "", ...signed(part.providerMetadata) };
        return undefined;
      case "reasoning-delta":
        if (this.#thinking)
          Object.assign(this.#thinking, { text: this.#thinking.text + part.delta, ...signed(part.providerMetadata) });
        return part.delta === "" ? undefined : { type: "thinking", delta: part.delta };
      case "reasoning-end":
        if (this.#thinking) this.#parts.push({ type: "thinking", ...this.#thinking, ...signed(part.providerMetadata) });
        this.#thinking = undefined;
        return undefined;
      case "tool-input-start":
        this.#begun++;
        if (this.#begun > ports.ANSWER_TOOL_CALLS)
          throw new AnswerBroken(`The model's answer has more than ${ports.ANSWER_TOOL_CALLS} tool calls`);
        return undefined;
      case "tool-call":
        this.#calls.push({
          ...{ callId: part.toolCallId, name: part.toolName },
          ...argumentsOf(part.input),
          ...callSignature(part.providerMetadata),
        });
        return undefined;
      case "finish": {
        const { inputTokens, outputTokens } = part.usage;
        this.#usage = {
          inputTokens: inputTokens.total,
          outputTokens: outputTokens.total,
          cachedInputTokens: inputTokens.cacheRead,
          reasoningTokens: outputTokens.reasoning,
        };
        this.#finished = part.finishReason;
        return undefined;
      }
      default:
        return undefined;
    }
  }

  /**
   * Throws AnswerBroken if the stream ended without the end marker of its protocol: none of its tool calls may run (open points
   * 13).
   */
  finish(): ModelAnswer {
    const end = this.#finished;
    if (!end || end.unified === "interrupted" || end.unified === "error" || end.raw === "error") throw new AnswerBroken();
    this.#endText();
    const cut = cutOf(end);
    // A tool call of a cut answer may be incomplete: empty arguments would be read as a call without arguments.
    return { parts: this.#parts, calls: cut ? [] : this.#calls, usage: this.#usage, ...(cut && { cut }) };
  }

  #endText(): void {
    if (this.#text?.text) this.#parts.push({ type: "text", text: this.#text.text });
    this.#text = undefined;
  }
}

function cutOf({ unified, raw }: FinishReason): AnswerCut | undefined {
  if (raw === "model_context_window_exceeded") return "context_full";
  if (unified === "length" || raw === "model_length") return "max_tokens";
  if (unified !== "content-filter") return undefined;
  return raw === "content_filter" ? "content_filter" : "refusal";
}

function signed(metadata: Readonly<Record<string, unknown>> | undefined): { signature?: string; redacted?: string } {
  const { signature, redactedData } = (metadata?.["anthropic"] ?? {}) as { signature?: unknown; redactedData?: unknown };
  return {
    ...(typeof signature === "string" && { signature }),
    ...(typeof redactedData === "string" && { redacted: redactedData }),
  };
}

/** Google's signature of a call, as the library for Chat Completions gives it. */
function callSignature(metadata: Readonly<Record<string, unknown>> | undefined): { signature?: string } {
  const { thoughtSignature } = (metadata?.[CHAT_PROVIDER] ?? {}) as { thoughtSignature?: unknown };
  return typeof thoughtSignature === "string" ? { signature: thoughtSignature } : {};
}

function argumentsOf(input: string): { readonly arguments?: unknown } {
  const args = input.trim() === "" ? {} : parsed(input);
  // Some models encode their arguments twice. Providers refuse a history whose calls have other arguments than objects.
  const value = typeof args === "string" ? parsed(args) : args;
  return isRecord(value) ? { arguments: value } : {};
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
