import { ports } from "@portico/core";
import { type AnswerPiece, type FinishReason, isJsonObject, type ModelEvent, type Usage } from "@portico/core/model-protocols";
import type { CallOptions, LanguageModel, StreamPart } from "./language-model.ts";
import { writeMetadata } from "./metadata-text.ts";

/**
 * Whether calls of tools are told while their arguments arrive. The id of a call contains what the provider needs back with it, and some
 * packages tell that only with the complete call (a thought signature of Gemini). So the calls of a model are told whole until one was complete,
 * and for ever if its metadata came late.
 */
export interface CallTimes {
  /** Undefined before the first complete call. */
  isLate?: boolean;
}

/** The answer of a model, as a stream or whole. `times` are those of the model: they change. */
export async function* answerPieces(
  id: string,
  model: LanguageModel,
  options: CallOptions,
  { isStream, times }: { readonly isStream: boolean; readonly times: CallTimes },
): AsyncGenerator<AnswerPiece> {
  const reader = new PartReader(id, times);
  for await (const part of isStream ? (await model.doStream(options)).stream : wholeParts(model, options)) {
    yield* reader.read(part);
    if (reader.hasEnded) return;
  }
  // An answer is complete only if it says so.
  throw new ports.ModelUnreachable(`Provider "${id}" ended its answer early`);
}

/** A whole answer in the parts of a stream. */
async function* wholeParts(model: LanguageModel, options: CallOptions): AsyncGenerator<StreamPart> {
  const { content, finishReason, usage, warnings, providerMetadata } = await model.doGenerate(options);
  yield { type: "stream-start", warnings };
  for (const [at, part] of content.entries()) {
    if (part.type === "text") yield { type: "text-delta", delta: part["text"] };
    else if (part.type === "reasoning") {
      yield { type: "reasoning-delta", id: String(at), delta: part["text"] };
      yield { type: "reasoning-end", id: String(at), providerMetadata: part["providerMetadata"] };
    } else yield part;
  }
  yield { type: "finish", finishReason, usage, providerMetadata };
}

/** Reads the parts of the specification versions 2 to 4. Parts without a counterpart in Messages, such as sources, are left out. */
class PartReader {
  hasEnded = false;
  readonly #id: string;
  /** Metadata of reasoning that has begun: it may come with each part of it. */
  readonly #reasoning = new Map<string, Record<string, unknown>>();
  readonly #times: CallTimes;
  /** Calls whose arguments are told while they arrive, by their ids. */
  readonly #begun = new Map<unknown, { readonly call: number; isEmpty: boolean }>();
  #calls = 0;

  constructor(id: string, times: CallTimes) {
    this.#id = id;
    this.#times = times;
  }

  *read(part: StreamPart): Generator<AnswerPiece> {
    switch (part.type) {
      case "stream-start":
        return yield { type: "dropped", fields: droppedFields(part["warnings"]) };
      case "text-delta":
        return yield textOf(part["delta"]);
      case "reasoning-start":
        return this.#note(part);
      case "reasoning-delta":
        this.#note(part);
        return yield { type: "thinking", text: textOf(part["delta"]) };
      case "reasoning-end":
        this.#note(part);
        return yield { type: "thinking-signature", signature: writeMetadata(this.#taken(part)) };
      case "tool-input-start":
        return yield* this.#beginCall(part);
      case "tool-input-delta": {
        const begun = this.#begun.get(part["id"]);
        if (!begun) return;
        begun.isEmpty &&= textOf(part["delta"]) === "";
        return yield { type: "tool-arguments", call: begun.call, json: textOf(part["delta"]) };
      }
      case "tool-call":
        return yield* this.#call(part);
      case "finish":
        return yield* this.#finish(part);
      case "error":
        throw part["error"];
    }
  }

  #note(part: StreamPart): void {
    const metadata = part["providerMetadata"];
    if (!isJsonObject(metadata)) return;
    const id = String(part["id"]);
    const noted = this.#reasoning.get(id) ?? {};
    for (const [name, value] of Object.entries(metadata))
      noted[name] = { ...(isJsonObject(noted[name]) ? noted[name] : {}), ...(isJsonObject(value) ? value : {}) };
    this.#reasoning.set(id, noted);
  }

  #taken(part: StreamPart): unknown {
    const id = String(part["id"]);
    const noted = this.#reasoning.get(id);
    this.#reasoning.delete(id);
    return noted;
  }

  *#beginCall(part: StreamPart): Generator<AnswerPiece> {
    if (this.#times.isLate !== false || isProviders(part)) return;
    const call = this.#calls++;
    this.#begun.set(part["id"], { call, isEmpty: true });
    yield startOf(call, part["id"], part);
  }

  /** A complete call: its end, or all of it. */
  *#call(part: StreamPart): Generator<AnswerPiece> {
    if (isProviders(part)) return;
    const id = part["toolCallId"];
    const begun = this.#begun.get(id);
    const call = begun?.call ?? this.#calls++;
    this.#times.isLate ||= writeMetadata(part["providerMetadata"]) !== "";
    if (!begun) yield startOf(call, id, part);
    const input = part["input"];
    if (begun?.isEmpty !== false)
      yield { type: "tool-arguments", call, json: typeof input === "string" ? input : JSON.stringify(input ?? {}) };
    yield { type: "tool-end", call };
  }

  *#finish(part: StreamPart): Generator<ModelEvent> {
    this.hasEnded = true;
    yield { type: "usage", usage: usageOf(part["usage"]) };
    const { unified, raw } = finishOf(part["finishReason"]);
    // A stream that ended without its last part has these reasons.
    if (unified === "error" || unified === "interrupted" || unified === "unknown")
      throw new ports.ModelUnreachable(`Provider "${this.#id}" ended its answer early`);
    const reason = RAW.get(raw) ?? REASONS.get(unified) ?? (this.#calls > 0 ? "tool" : "end");
    yield { type: "finish", reason };
  }
}

/** Tools that the provider itself runs are not the caller's. */
function isProviders(part: StreamPart): boolean {
  return part["providerExecuted"] === true;
}

function startOf(call: number, id: unknown, part: StreamPart): AnswerPiece {
  const signature = writeMetadata(part["providerMetadata"]);
  const start = { type: "tool-start", call, id: textOf(id), name: textOf(part["toolName"]) } as const;
  return signature === "" ? start : { ...start, signature };
}

const REASONS: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["stop", "end"],
  ["length", "length"],
  ["content-filter", "refusal"],
  ["tool-calls", "tool"],
]);

/** Reasons of Messages that the interface does not have. */
const RAW: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["pause_turn", "pause"],
  ["model_context_window_exceeded", "context-window"],
]);

/** Version 2 has only a word. */
function finishOf(reason: unknown): { readonly unified: string; readonly raw: string } {
  if (!isJsonObject(reason)) return { unified: textOf(reason), raw: "" };
  return { unified: textOf(reason["unified"]), raw: textOf(reason["raw"]) };
}

/** Versions 3 and 4 have groups of counts, version 2 has a list. */
function usageOf(value: unknown): Usage {
  if (!isJsonObject(value)) return {};
  const { inputTokens, outputTokens } = value;
  const output = isJsonObject(outputTokens) ? outputTokens : { total: outputTokens, reasoning: value["reasoningTokens"] };
  const input = isJsonObject(inputTokens) ? inputTokens : { total: inputTokens, cacheRead: value["cachedInputTokens"] };
  const [total, cacheRead, cacheWrite] = [count(input["total"]), count(input["cacheRead"]), count(input["cacheWrite"])];
  const uncached = total === undefined ? undefined : Math.max(0, total - (cacheRead ?? 0) - (cacheWrite ?? 0));
  return {
    input: count(input["noCache"]) ?? uncached,
    cacheRead,
    cacheWrite,
    output: count(output["total"]),
    reasoning: count(output["reasoning"]),
  };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Settings of the interface by their names in Messages. */
const FIELDS: Readonly<Record<string, string>> = {
  maxOutputTokens: "max_tokens",
  topP: "top_p",
  topK: "top_k",
  stopSequences: "stop_sequences",
  responseFormat: "output_config.format",
  reasoning: "thinking",
  toolChoice: "tool_choice",
};

/** What the model says that it did not use. Version 2 names settings, the later ones features. */
function droppedFields(warnings: unknown): readonly string[] {
  if (!Array.isArray(warnings)) return [];
  return warnings.flatMap((warning: unknown) => {
    if (!isJsonObject(warning) || !String(warning["type"]).startsWith("unsupported")) return [];
    const name = textOf(warning["feature"] ?? warning["setting"]) || "tools";
    return [FIELDS[name] ?? name];
  });
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
