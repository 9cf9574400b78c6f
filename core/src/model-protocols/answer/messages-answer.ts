import { upstreamFailure } from "../errors.ts";
import { isJsonObject, type Json, type JsonObject, writeExactly } from "../json.ts";
import type { FinishReason, Usage } from "../model-events.ts";
import { readErrorValue } from "../read-upstream-error.ts";
import { type AnswerReader, type Emit, toolCallLimit } from "./answer-reader.ts";
import { isPlaceholder } from "./chat-tool-calls.ts";
import { isBrokenFinish, readFinishReason, settleFinishReason } from "./finish-reason.ts";
import { mergeUsage, readMessagesUsage } from "./usage.ts";

interface Block {
  readonly kind: "text" | "thinking" | "tool" | "ignored";
  /** The number of the call in the events, if the block is a tool call. */
  readonly call: number;
  /** The input in the block's start. Deltas replace it. */
  readonly input: JsonObject | undefined;
  signature: string;
  hasDeltas: boolean;
  /** An empty object before the arguments. It is left out: without arguments, the input is empty anyway. */
  held: string;
}

const EVENTS: ReadonlySet<string> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "error",
]);

/** Reads an answer in Messages: its stream's events one by one, or a whole message. */
export class MessagesAnswer implements AnswerReader {
  readonly #emit: Emit;
  readonly #blocks = new Map<Json | undefined, Block>();
  #isStarted = false;
  #hasContent = false;
  #calls = 0;
  #usage: Usage | undefined;
  #finish: FinishReason | undefined;
  #stopSequence: string | undefined;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  knows(name: string): boolean {
    return EVENTS.has(name);
  }

  read(event: JsonObject, name: string | undefined): void {
    switch (name === "error" ? name : (event.type ?? name)) {
      case "content_block_delta":
        if (isJsonObject(event.delta)) this.#delta(event.index, event.delta);
        return;
      case "content_block_start":
        if (isJsonObject(event.content_block)) this.#open(event.index, event.content_block);
        return;
      case "content_block_stop":
        this.#stop(event.index);
        return;
      case "message_start":
        if (isJsonObject(event.message)) this.#start(event.message);
        return;
      case "message_delta":
        this.#usage = mergeUsage(this.#usage, readMessagesUsage(event.usage));
        if (isJsonObject(event.delta)) this.#finishReason(event.delta);
        return;
      case "message_stop":
        this.close(true);
        return;
      case "error":
        this.#fail(event);
        return;
    }
    // `ping` and unknown events have no counterpart and are ignored. An error in another protocol's form is reported.
    if (isJsonObject(event.error)) this.#fail(event);
  }

  /** Takes a whole message instead of a stream's events. */
  readWhole(body: JsonObject): void {
    if (body.type === "error" || isJsonObject(body.error)) {
      this.#fail(body);
      return;
    }
    if (!Array.isArray(body.content)) {
      this.#emit(upstreamFailure("The provider's answer has no content."));
      return;
    }
    this.#start(body);
    for (const [index, block] of (body.content as readonly Json[]).entries()) {
      if (!isJsonObject(block)) continue;
      this.#open(index, block);
      this.#stop(index);
    }
    this.#finishReason(body);
    this.close(true);
  }

  close(marked: boolean): void {
    // An end without a reason completes only an answer with content.
    const cut = this.#finish === undefined && !(marked && this.#hasContent);
    if (!cut) for (const index of [...this.#blocks.keys()]) this.#stop(index);
    if (this.#usage !== undefined) this.#emit({ type: "usage", usage: this.#usage });
    if (cut) {
      this.#emit(upstreamFailure("The provider's stream ended before its answer was complete."));
      return;
    }
    const reason = settleFinishReason(this.#finish ?? "end", { toolCalls: this.#calls > 0, refused: false });
    this.#emit({ type: "finish", reason, ...(this.#stopSequence !== undefined && { stopSequence: this.#stopSequence }) });
  }

  #start(message: JsonObject): void {
    // A relay that tries a request again appends the second answer to the beginning of the first (vercel/ai#18331).
    if (this.#isStarted) this.#emit(upstreamFailure("The provider's stream contains a second answer."));
    this.#isStarted = true;
    this.#usage = mergeUsage(this.#usage, readMessagesUsage(message.usage));
    this.#emit({ type: "start", model: typeof message.model === "string" ? message.model : undefined, usage: this.#usage });
  }

  #open(index: Json | undefined, start: JsonObject): void {
    this.#stop(index);
    this.#hasContent = true;
    const kind = kindOf(start.type);
    const input = kind === "tool" && isJsonObject(start.input) ? start.input : undefined;
    this.#blocks.set(index, { kind, call: this.#calls, input, signature: text(start.signature), hasDeltas: false, held: "" });
    if (kind === "text" && text(start.text) !== "") this.#emit({ type: "text", text: text(start.text) });
    if (kind === "thinking" && text(start.thinking) !== "") this.#emit({ type: "thinking", text: text(start.thinking) });
    if (start.type === "redacted_thinking") this.#emit({ type: "redacted-thinking", data: text(start.data) });
    if (kind !== "tool") return;
    const tooMany = toolCallLimit(this.#calls);
    if (tooMany !== undefined) this.#emit(upstreamFailure(tooMany));
    this.#emit({ type: "tool-start", call: this.#calls, id: text(start.id), name: text(start.name) });
    this.#calls += 1;
  }

  #delta(index: Json | undefined, delta: JsonObject): void {
    this.#hasContent = true;
    const block = this.#blocks.get(index);
    // A delta without a started block keeps its text. Blocks of the server's own tools are left out.
    if (block?.kind === "ignored") return;
    switch (delta.type) {
      case "text_delta":
        if (text(delta.text) !== "") this.#emit({ type: "text", text: text(delta.text) });
        return;
      case "thinking_delta":
        if (text(delta.thinking) !== "") this.#emit({ type: "thinking", text: text(delta.thinking) });
        return;
      case "signature_delta":
        if (block !== undefined) block.signature += text(delta.signature);
        return;
      case "input_json_delta":
        if (block?.kind === "tool") this.#arguments(block, text(delta.partial_json));
    }
  }

  #arguments(block: Block, json: string): void {
    if (json === "") return;
    if (!block.hasDeltas && isPlaceholder(block.held + json)) {
      block.held += json;
      return;
    }
    block.hasDeltas = true;
    this.#emit({ type: "tool-arguments", call: block.call, json });
  }

  #stop(index: Json | undefined): void {
    const block = this.#blocks.get(index);
    if (block === undefined) return;
    this.#blocks.delete(index);
    if (block.kind === "thinking" && block.signature !== "")
      this.#emit({ type: "thinking-signature", signature: block.signature });
    if (block.kind !== "tool") return;
    if (!block.hasDeltas && block.input !== undefined && Object.keys(block.input).length > 0) {
      this.#emit({ type: "tool-arguments", call: block.call, json: writeExactly(block.input) });
    }
    this.#emit({ type: "tool-end", call: block.call });
  }

  #finishReason(holder: JsonObject): void {
    if (typeof holder.stop_sequence === "string") this.#stopSequence = holder.stop_sequence;
    const reason = holder.stop_reason;
    if (typeof reason !== "string" || reason === "") return;
    if (isBrokenFinish(reason)) {
      this.#emit(upstreamFailure("The provider ended its answer early."));
      return;
    }
    this.#finish = readFinishReason(reason);
  }

  #fail(value: JsonObject): void {
    this.#emit({ type: "error", error: readErrorValue("messages", value) });
  }
}

function kindOf(type: Json | undefined): Block["kind"] {
  if (type === "text" || type === "thinking") return type;
  return type === "tool_use" ? "tool" : "ignored";
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
