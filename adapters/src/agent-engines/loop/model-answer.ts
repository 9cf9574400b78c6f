import { parseJson, type ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { type FinishReason, mergeUsage, type ModelEvent, type Usage } from "@portico/core/model-protocols";
import { inputTokensOf } from "../../models/call/counted-calls.ts";
import { AnswerBroken } from "../../models/call/model-refused.ts";

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

/** Assembles the events of a streamed answer. */
export class AnswerInProgress {
  readonly #protocol: ports.ModelProtocol;
  readonly #parts: ports.MessagePart[] = [];
  /** Tool calls by their number, in the order in which they began. */
  readonly #calls = new Map<number, { callId: string; name: string; json: string; signature?: string }>();
  /** The part that grows. */
  #open: { type: "text"; text: string } | { type: "thinking"; text: string; signature?: string } | undefined;
  #usage: Usage | undefined;
  #finished: FinishReason | undefined;
  #isRefused = false;

  /** `protocol`: that of the provider. */
  constructor(protocol: ports.ModelProtocol) {
    this.#protocol = protocol;
  }

  take(event: ModelEvent): Extract<ports.Saying, { delta: string }> | undefined {
    switch (event.type) {
      case "refusal":
        this.#isRefused = true;
        return this.#grow("text", event.text);
      case "text":
      case "thinking":
        return this.#grow(event.type, event.text);
      case "thinking-signature":
        this.#sign(event.signature);
        return undefined;
      case "redacted-thinking":
        this.#close();
        this.#parts.push({ type: "thinking", text: "", redacted: event.data });
        return undefined;
      case "tool-start": {
        const { id, name, signature } = event;
        this.#calls.set(event.call, { callId: id, name, json: "", ...(signature !== undefined && { signature }) });
        return undefined;
      }
      case "tool-arguments": {
        const call = this.#calls.get(event.call);
        if (call) call.json += event.json;
        return undefined;
      }
      case "start":
      case "usage":
        this.#usage = mergeUsage(this.#usage, event.usage);
        return undefined;
      case "finish":
        this.#finished = event.reason;
        return undefined;
      default:
        return undefined;
    }
  }

  /**
   * Throws AnswerBroken if the stream ended without the end marker of its protocol: none of its tool calls may run (open points
   * 13).
   */
  finish(): ModelAnswer {
    if (this.#finished === undefined) throw new AnswerBroken();
    this.#close();
    const cut = this.#cutOf(this.#finished);
    const calls = [...this.#calls.values()].map(({ json, ...call }) => ({ ...call, ...argumentsOf(json) }));
    const usage = this.#usage;
    return {
      parts: this.#parts,
      // A tool call of a cut answer may be incomplete: empty arguments would be read as a call without arguments.
      calls: cut ? [] : calls,
      usage: {
        inputTokens: inputTokensOf(usage),
        outputTokens: usage?.output,
        cachedInputTokens: usage?.cacheRead,
        reasoningTokens: usage?.reasoning,
      },
      ...(cut && { cut }),
    };
  }

  #grow(type: "text" | "thinking", delta: string): Extract<ports.Saying, { delta: string }> | undefined {
    if (delta === "") return undefined;
    if (this.#open?.type !== type) this.#close();
    const open = (this.#open ??= { type, text: "" });
    open.text += delta;
    return { type, delta };
  }

  /** Thinking can have a signature and no text. */
  #sign(signature: string): void {
    if (this.#open?.type !== "thinking") this.#close();
    const { text } = this.#open ?? { text: "" };
    this.#open = { type: "thinking", text, ...(signature !== "" && { signature }) };
    this.#close();
  }

  #close(): void {
    if (this.#open) this.#parts.push(this.#open);
    this.#open = undefined;
  }

  #cutOf(reason: FinishReason): AnswerCut | undefined {
    if (reason === "context-window") return "context_full";
    if (reason === "length") return "max_tokens";
    if (reason !== "refusal") return undefined;
    // A model of Chat Completions that refuses says so in words.
    return this.#protocol === "messages" || this.#isRefused ? "refusal" : "content_filter";
  }
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
