import { splitEventStream, type WireEvent } from "./event-stream-text.ts";
import { check, checkCounts, type Fields, isCount, isText, object, parseLoosely, parseObject } from "./grammar-check.ts";

/** The content of a Messages stream, as a client library would hand it to its caller. */
export interface CollectedMessage {
  readonly id: string;
  readonly model: string;
  readonly content: readonly Fields[];
  readonly stopReason: string | null;
  readonly stopSequence: string | null;
  /** The start's usage with the end's written over it. */
  readonly usage: Fields;
  /** The error that ended the stream instead of `message_stop`. */
  readonly error: Fields | undefined;
}

/** Throws a sentence that names the first breach of the grammar of Messages streams. */
export function assertMessagesStream(stream: string | Uint8Array): void {
  collectMessagesStream(stream);
}

/** The content of a Messages stream. Throws like {@link assertMessagesStream}. */
export function collectMessagesStream(stream: string | Uint8Array): CollectedMessage {
  const collector = new MessagesCollector();
  for (const event of splitEventStream(stream)) collector.take(event);
  return collector.result();
}

const STOP_REASONS = [
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
];

/** For each type of block: the field that its deltas fill, and those deltas' type and field. */
const BLOCK_DELTAS: Readonly<Record<string, { field: string; type: string; piece: string } | undefined>> = {
  text: { field: "text", type: "text_delta", piece: "text" },
  thinking: { field: "thinking", type: "thinking_delta", piece: "thinking" },
  tool_use: { field: "input", type: "input_json_delta", piece: "partial_json" },
};

class MessagesCollector {
  #message: Fields | undefined;
  readonly #content: Fields[] = [];
  #open: { block: Record<string, unknown>; text: string; signed: boolean } | undefined;
  #stop: { reason: string; sequence: string | null } | undefined;
  #usage: Fields = {};
  #stopped = false;
  #error: Fields | undefined;

  take(event: WireEvent): void {
    const data = parseObject(event.data, "an event's data");
    check(data.type === event.name, `event "${event.name}" carries data of type "${String(data.type)}"`);
    check(!this.#over, `"${event.name}" follows the end of the stream`);
    if (event.name === "ping") return;
    if (event.name === "error") {
      this.#fail(data);
      return;
    }
    if (event.name === "message_start") {
      this.#start(object(data.message, "message_start.message"));
      return;
    }
    check(this.#message !== undefined, `"${event.name}" comes before message_start`);
    check(this.#stop === undefined || event.name === "message_stop", `"${event.name}" follows message_delta`);
    switch (event.name) {
      case "content_block_start":
        this.#openBlock(data);
        return;
      case "content_block_delta":
        this.#delta(data);
        return;
      case "content_block_stop":
        this.#closeBlock(data);
        return;
      case "message_delta":
        this.#messageDelta(data);
        return;
      case "message_stop":
        check(this.#stop !== undefined, "message_stop comes without message_delta");
        this.#stopped = true;
        return;
    }
    throw new Error(`"${event.name}" is no event of Messages`);
  }

  result(): CollectedMessage {
    check(this.#over, "the stream has no end: neither message_stop nor an error");
    return {
      id: String(this.#message?.id ?? ""),
      model: String(this.#message?.model ?? ""),
      content: this.#content,
      stopReason: this.#stop?.reason ?? null,
      stopSequence: this.#stop?.sequence ?? null,
      usage: this.#usage,
      error: this.#error,
    };
  }

  get #over(): boolean {
    return this.#stopped || this.#error !== undefined;
  }

  #start(message: Fields): void {
    check(this.#message === undefined, "message_start comes twice");
    check(message.type === "message" && message.role === "assistant", "message_start is not about a message of the assistant");
    check(isText(message.id) && isText(message.model), "message_start has no id or no model");
    check(Array.isArray(message.content) && message.content.length === 0, "message_start.message.content is not empty");
    check(message.stop_reason === null && message.stop_sequence === null, "message_start already has a reason to stop");
    this.#message = message;
    this.#usage = object(message.usage, "message_start.message.usage");
    check(isCount(this.#usage.input_tokens) && isCount(this.#usage.output_tokens), "message_start has no complete usage");
    checkCounts(this.#usage);
  }

  #openBlock(data: Fields): void {
    check(this.#open === undefined, `block ${String(data.index)} starts while another is open`);
    check(data.index === this.#content.length, `block ${String(data.index)} starts where ${this.#content.length} is next`);
    const block = { ...object(data.content_block, "content_block") };
    if (block.type === "redacted_thinking") check(typeof block.data === "string", "redacted_thinking has no data");
    else if (block.type === "tool_use") {
      check(typeof block.id === "string" && /^[a-zA-Z0-9_-]+$/.test(block.id), "the id of a tool_use breaks its pattern");
      check(
        this.#content.every((earlier) => earlier.id !== block.id),
        "two tool_use blocks have one id",
      );
      check(isText(block.name), "a tool_use has no name");
      check(Object.keys(object(block.input, "tool_use.input")).length === 0, "a tool_use starts with input");
    } else {
      const delta = BLOCK_DELTAS[String(block.type)];
      check(delta !== undefined, `"${String(block.type)}" is no type of block`);
      check(block[delta.field] === "", `a block of type "${String(block.type)}" does not start empty`);
      check(block.type !== "thinking" || block.signature === "", "a thinking block does not start with an empty signature");
    }
    this.#open = { block, text: "", signed: false };
  }

  #delta(data: Fields): void {
    const open = this.#open;
    check(
      open !== undefined && data.index === this.#content.length,
      `a delta for block ${String(data.index)}, which is not open`,
    );
    const delta = object(data.delta, "delta");
    check(!open.signed, "a delta follows the signature of its block");
    if (delta.type === "signature_delta") {
      check(
        open.block.type === "thinking" && isText(delta.signature),
        "a signature_delta outside thinking, or without a signature",
      );
      open.signed = true;
      open.block.signature = delta.signature;
      return;
    }
    const expected = BLOCK_DELTAS[String(open.block.type)];
    const fits = expected !== undefined && delta.type === expected.type;
    check(fits, `a ${String(delta.type)} in a block of type "${String(open.block.type)}"`);
    const piece = delta[expected.piece];
    check(typeof piece === "string", `a ${expected.type} without ${expected.piece}`);
    open.text += piece;
  }

  #closeBlock(data: Fields): void {
    const open = this.#open;
    check(open !== undefined && data.index === this.#content.length, `block ${String(data.index)} stops, which is not open`);
    const delta = BLOCK_DELTAS[String(open.block.type)];
    if (open.block.type === "text") check(open.text !== "", "a text block is empty");
    // The arguments are the model's own text and need not be valid, as in a call that was cut by the limit.
    if (open.block.type === "tool_use") open.block.input = open.text === "" ? {} : parseLoosely(open.text);
    else if (delta !== undefined) open.block[delta.field] = open.text;
    this.#content.push(open.block);
    this.#open = undefined;
  }

  #messageDelta(data: Fields): void {
    check(this.#open === undefined, "message_delta comes while a block is open");
    const delta = object(data.delta, "message_delta.delta");
    check(STOP_REASONS.includes(String(delta.stop_reason)), `"${String(delta.stop_reason)}" is no stop_reason`);
    check(delta.stop_sequence === null || typeof delta.stop_sequence === "string", "stop_sequence is neither null nor text");
    const usage = object(data.usage, "message_delta.usage");
    check(isCount(usage.output_tokens), "message_delta has no output_tokens");
    checkCounts(usage);
    this.#usage = { ...this.#usage, ...usage };
    this.#stop = { reason: String(delta.stop_reason), sequence: delta.stop_sequence };
  }

  #fail(data: Fields): void {
    const error = object(data.error, "error.error");
    check(isText(error.type) && isText(error.message), "an error has no type or no message");
    this.#error = error;
  }
}
