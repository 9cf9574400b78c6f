import { splitEventStream, type WireEvent } from "./event-stream-text.ts";
import { check, checkCounts, type Fields, isCount, isText, object, optionalText, parseObject } from "./grammar-check.ts";

/** The content of a Chat Completions stream, as a client library would hand it to its caller. */
export interface CollectedCompletion {
  readonly id: string;
  readonly model: string;
  readonly content: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly reasoningDetails: readonly Fields[];
  /** The call of an answer to a request with `functions`; undefined in every other. */
  readonly functionCall: { readonly name: string; readonly arguments: string } | undefined;
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finishReason: string | null;
  readonly usage: Fields | undefined;
  /** The error that ended the stream instead of `[DONE]`. */
  readonly error: Fields | undefined;
}

/** Throws a sentence that names the first breach of the grammar of Chat Completions streams. */
export function assertChatStream(stream: string | Uint8Array): void {
  collectChatStream(stream);
}

/** The content of a Chat Completions stream. Throws like {@link assertChatStream}. */
export function collectChatStream(stream: string | Uint8Array): CollectedCompletion {
  const collector = new ChatCollector();
  for (const event of splitEventStream(stream)) collector.take(event);
  return collector.result();
}

const FINISH_REASONS = ["stop", "length", "tool_calls", "content_filter", "function_call"];
const CHUNK_FIELDS = ["id", "object", "created", "model"] as const;

class ChatCollector {
  #first: Fields | undefined;
  #role = false;
  #finish: string | undefined;
  #usage: Fields | undefined;
  #isDone = false;
  #error: Fields | undefined;
  #content = "";
  #refusal = "";
  #reasoning = "";
  readonly #details: Fields[] = [];
  #functionCall: { name: string; arguments: string } | undefined;
  readonly #calls: { id: string; name: string; arguments: string }[] = [];

  take(event: WireEvent): void {
    check(event.name === undefined, `an event is named "${event.name}"; Chat Completions has no event names`);
    check(!this.#over, "something follows the end of the stream");
    if (event.data === "[DONE]") {
      check(this.#finish !== undefined, "[DONE] comes without a finish_reason");
      this.#isDone = true;
      return;
    }
    const chunk = parseObject(event.data, "a chunk");
    if (chunk.error !== undefined) {
      this.#fail(object(chunk.error, "error"));
      return;
    }
    this.#checkChunk(chunk);
    check(this.#usage === undefined, "a chunk follows the one with the usage");
    const choices = chunk.choices as readonly unknown[];
    if (choices.length === 0) {
      this.#takeUsage(chunk);
      return;
    }
    check(chunk.usage === undefined || chunk.usage === null, "a chunk with a choice has usage that is not null");
    check(choices.length === 1, "a chunk has more than one choice");
    this.#takeChoice(object(choices[0], "a choice"));
  }

  result(): CollectedCompletion {
    check(this.#over, "the stream has no end: neither [DONE] nor an error");
    return {
      id: String(this.#first?.id ?? ""),
      model: String(this.#first?.model ?? ""),
      content: this.#content,
      refusal: this.#refusal,
      reasoning: this.#reasoning,
      reasoningDetails: this.#details,
      toolCalls: this.#calls,
      functionCall: this.#functionCall,
      finishReason: this.#finish ?? null,
      usage: this.#usage,
      error: this.#error,
    };
  }

  get #over(): boolean {
    return this.#isDone || this.#error !== undefined;
  }

  #checkChunk(chunk: Fields): void {
    check(chunk.object === "chat.completion.chunk", `a chunk's object is "${String(chunk.object)}"`);
    check(isText(chunk.id) && isText(chunk.model) && isCount(chunk.created), "a chunk has no id, model or created");
    check(Array.isArray(chunk.choices), "a chunk has no choices");
    for (const field of CHUNK_FIELDS)
      check(chunk[field] === (this.#first ?? chunk)[field], `"${field}" changes within the stream`);
    const tellsUsage = Object.hasOwn(this.#first ?? chunk, "usage");
    check(tellsUsage === Object.hasOwn(chunk, "usage"), "some chunks have usage and others do not");
    this.#first ??= chunk;
  }

  #takeUsage(chunk: Fields): void {
    check(this.#finish !== undefined, "the chunk with the usage comes before the finish_reason");
    this.#usage = object(chunk.usage, "the usage");
    checkCounts(this.#usage);
    const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = this.#usage;
    if (isCount(prompt) && isCount(completion)) check(total === prompt + completion, "total_tokens is not the sum of its parts");
  }

  #takeChoice(choice: Fields): void {
    check(choice.index === 0, "a choice has another index than 0");
    check(this.#finish === undefined, "a choice follows the finish_reason");
    const delta = object(choice.delta, "a choice's delta");
    check(this.#role === (delta.role === undefined), this.#role ? "the role comes twice" : "the first delta has no role");
    if (!this.#role) check(delta.role === "assistant", "the role is not the assistant's");
    this.#role = true;
    this.#content += optionalText(delta.content, "content");
    this.#refusal += optionalText(delta.refusal, "refusal");
    this.#reasoning += optionalText(delta.reasoning_content, "reasoning_content");
    if (delta.reasoning_details !== undefined) {
      check(Array.isArray(delta.reasoning_details), "reasoning_details is not a list");
      for (const detail of delta.reasoning_details) this.#details.push(object(detail, "a reasoning detail"));
    }
    if (delta.tool_calls !== undefined) {
      check(Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0, "tool_calls is not a list with something in it");
      for (const call of delta.tool_calls) this.#takeCall(object(call, "a tool call"));
    }
    if (delta.function_call !== undefined) this.#takeFunctionCall(object(delta.function_call, "a function call"));
    if (choice.finish_reason === null) return;
    check(FINISH_REASONS.includes(String(choice.finish_reason)), `"${String(choice.finish_reason)}" is no finish_reason`);
    this.#finish = String(choice.finish_reason);
  }

  /** The answer to the old `functions`: one call, without an index or an id. */
  #takeFunctionCall(called: Fields): void {
    const isFirst = this.#functionCall === undefined;
    check(
      isText(called.name) === isFirst,
      isFirst ? "a function call begins without a name" : "the name of a function call comes twice",
    );
    this.#functionCall ??= { name: String(called.name), arguments: "" };
    this.#functionCall.arguments += optionalText(called.arguments, "arguments");
  }

  #takeCall(call: Fields): void {
    const called = object(call.function, "a tool call's function");
    const piece = optionalText(called.arguments, "arguments");
    const known = typeof call.index === "number" ? this.#calls[call.index] : undefined;
    if (known === undefined) {
      check(call.index === this.#calls.length, `tool call ${String(call.index)} begins where ${this.#calls.length} is next`);
      check(isText(call.id) && call.type === "function" && isText(called.name), "a tool call begins without id, type or name");
      check(
        this.#calls.every((earlier) => earlier.id !== call.id),
        "two tool calls have one id",
      );
      this.#calls.push({ id: call.id, name: called.name, arguments: piece });
      return;
    }
    check(call.id === undefined || call.id === known.id, `the id of tool call ${String(call.index)} changes`);
    check(called.name === undefined || called.name === known.name, `the name of tool call ${String(call.index)} changes`);
    known.arguments += piece;
  }

  #fail(error: Fields): void {
    check(isText(error.message) && isText(error.type), "an error has no type or no message");
    check(Object.hasOwn(error, "param") && Object.hasOwn(error, "code"), "an error has no param or no code");
    this.#error = error;
  }
}
