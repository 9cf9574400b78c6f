import { type AnswerReader, type Emit, toolCallLimit } from "../answer/answer-reader.ts";
import { settleFinishReason } from "../answer/finish-reason.ts";
import { readChatUsage } from "../answer/usage.ts";
import { upstreamFailure } from "../errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { FinishReason, ModelError, ModelErrorKind, ModelEvent } from "../model-events.ts";
import { readErrorValue } from "../read-upstream-error.ts";
import { type ReasoningMark, writeReasoningMark } from "./reasoning-mark.ts";

interface Item {
  readonly kind: "message" | "reasoning" | "call" | "ignored";
  /** The parts of which deltas came. The complete text of such a part repeats them (databricks/databricks-ai-bridge#464). */
  readonly begun: Set<string>;
  /** The number of a call in the events; undefined until its name is known. */
  call?: number;
  isDone: boolean;
}

/** Maximum items of an answer, so that an upstream cannot fill the memory. */
const ITEMS = 4_096;

const EVENTS = /^(?:response\.|error$)/;

/**
 * Reads an answer of OpenAI's Responses API: its stream's events one by one, or a whole response. Items are told apart by their index,
 * because some servers give each event of an item another id (BerriAI/litellm#30072). Unknown events and items are ignored.
 */
export class ResponsesAnswer implements AnswerReader {
  readonly #emit: Emit;
  readonly #owner: string;
  /** By index, and by id. */
  readonly #items = new Map<number | string, Item>();
  #hasBegun = false;
  #calls = 0;
  #hasNamelessCall = false;
  #refused = false;
  /** Whether there is thinking that no signature has ended. */
  #hasThinking = false;
  /** Where the text of the present reasoning comes from: an answer may have both a summary and the reasoning itself. */
  #source: "summary" | "content" | undefined;
  /** Reasoning that has ended. Its signature waits for the message that follows. */
  #ended: ReasoningMark | undefined;

  /** `owner` as in `requestToResponses`. */
  constructor(emit: Emit, owner: string) {
    this.#emit = emit;
    this.#owner = owner;
  }

  knows(name: string): boolean {
    return EVENTS.test(name);
  }

  read(event: JsonObject, name: string | undefined): void {
    const response = isJsonObject(event.response) ? event.response : {};
    switch (event.type ?? name) {
      case "response.created":
        this.#begin(response);
        return;
      case "response.output_item.added":
        this.#open(event);
        return;
      case "response.output_item.done":
        this.#close(this.#open(event), event.item);
        return;
      case "response.output_text.delta":
      case "response.refusal.delta":
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
      case "response.function_call_arguments.delta":
        this.#piece(event, String(event.type ?? name), event.delta, true);
        return;
      case "response.output_text.done":
      case "response.reasoning_summary_text.done":
      case "response.reasoning_text.done":
        this.#piece(event, String(event.type ?? name), event.text, false);
        return;
      case "response.refusal.done":
        this.#piece(event, "response.refusal.done", event.refusal, false);
        return;
      case "response.function_call_arguments.done":
        this.#piece(event, "response.function_call_arguments.done", event.arguments, false);
        return;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
      case "response.done":
        this.#finish(response, String(event.type ?? name).slice("response.".length));
        return;
      case "error":
        this.#fail(event);
        return;
    }
    // An error in another protocol's form.
    if (isJsonObject(event.error)) this.#fail(event);
  }

  /** Takes a whole response instead of a stream's events. */
  readWhole(body: JsonObject): void {
    if (isJsonObject(body.error) || body.type === "error") {
      this.#fail(body);
      return;
    }
    if (!Array.isArray(body.output)) {
      this.#emit(upstreamFailure("The provider's answer has no output."));
      return;
    }
    this.#begin(body);
    this.#finish(body, "completed");
  }

  /** Only the events of `#finish` complete an answer, so an end without them is always too early. */
  close(): void {
    this.#emit(upstreamFailure("The provider's stream ended before its answer was complete."));
  }

  #begin(response: JsonObject): void {
    // A gateway that tries a request again appends the second answer to the first: mnfst/llm-gateway#2072.
    if (this.#hasBegun) this.#emit(upstreamFailure("The provider's stream contains a second answer."));
    this.#hasBegun = true;
    this.#emit({ type: "start", model: typeof response.model === "string" ? response.model : undefined });
  }

  #open(event: JsonObject): Item {
    const value = isJsonObject(event.item) ? event.item : {};
    const known = this.#find(event);
    if (known) return known;
    const item: Item = { kind: kindOf(value.type), begun: new Set(), isDone: false };
    if (this.#items.size >= ITEMS) this.#emit(upstreamFailure(`The provider's answer has more than ${ITEMS} items.`));
    for (const key of keysOf(event)) this.#items.set(key, item);
    if (item.kind === "ignored") return item;
    this.#sign(item.kind === "message" ? value : undefined);
    this.#hasThinking = false;
    if (item.kind === "reasoning") this.#source = undefined;
    if (item.kind === "call") this.#name(item, value);
    return item;
  }

  #find(event: JsonObject): Item | undefined {
    return keysOf(event)
      .map((key) => this.#items.get(key))
      .find((item) => item !== undefined);
  }

  /** A call begins with its name. Some servers name it only when it is complete. */
  #name(item: Item, { name, call_id: id }: JsonObject): void {
    if (item.call !== undefined || text(name) === "") return;
    const tooMany = toolCallLimit(this.#calls);
    if (tooMany !== undefined) this.#emit(upstreamFailure(tooMany));
    item.call = this.#calls++;
    this.#emit({ type: "tool-start", call: item.call, id: text(id), name: text(name) });
  }

  /** Takes a delta, or the complete text of a part, which counts if there was no delta of it. */
  #piece(event: JsonObject, type: string, value: Json | undefined, isDelta: boolean): void {
    const item = this.#find(event) ?? this.#open({ ...event, item: { type: itemTypeOf(type) } });
    if (item.isDone || item.kind === "ignored") return;
    const kind = type.split(".")[1]!;
    const part = `${kind} ${String(event.content_index ?? event.summary_index ?? 0)}`;
    if (!isDelta && item.begun.has(part)) return;
    const piece = text(value);
    if (piece === "") return;
    const isNext = !item.begun.has(part) && item.begun.size > 0;
    if (item.begun.size < ITEMS) item.begun.add(part);
    this.#content(item, kind, piece, isNext);
  }

  #content(item: Item, kind: string, piece: string, isNextPart: boolean): void {
    switch (kind) {
      case "output_text":
        this.#sign();
        this.#emit({ type: "text", text: piece });
        return;
      case "refusal":
        this.#sign();
        this.#refused = true;
        this.#emit({ type: "refusal", text: piece });
        return;
      case "function_call_arguments":
        if (item.call !== undefined) this.#emit({ type: "tool-arguments", call: item.call, json: piece });
        else item.begun.clear();
        return;
      default: {
        const source = kind === "reasoning_text" ? "content" : "summary";
        this.#source ??= source;
        if (this.#source !== source) return;
        this.#hasThinking = true;
        this.#emit({ type: "thinking", text: isNextPart ? `\n\n${piece}` : piece });
      }
    }
  }

  /** The complete item. What its deltas did not say is taken from it. */
  #close(item: Item, value: Json | undefined): void {
    if (item.isDone || !isJsonObject(value)) return;
    if (item.kind === "message") this.#parts(item, value.content);
    if (item.kind === "reasoning") {
      if (item.begun.size === 0) this.#parts(item, value.summary);
      if (item.begun.size === 0) this.#parts(item, value.content);
      const encrypted = text(value.encrypted_content);
      // Without either, the provider could not read its own reasoning again.
      if (text(value.id) !== "" && (encrypted !== "" || this.#source === "content"))
        this.#ended = { id: text(value.id), ...(encrypted !== "" && { encrypted }) };
    }
    if (item.kind === "call") {
      this.#name(item, value);
      this.#wholePart(item, "function_call_arguments", 0, value.arguments);
      if (item.call === undefined) this.#hasNamelessCall = true;
      else this.#emit({ type: "tool-end", call: item.call });
    }
    item.isDone = true;
  }

  #parts(item: Item, parts: Json | undefined): void {
    for (const [index, part] of (Array.isArray(parts) ? (parts as readonly Json[]) : []).entries()) {
      if (!isJsonObject(part)) continue;
      const kind = part.type === "summary_text" ? "reasoning_summary_text" : text(part.type);
      this.#wholePart(item, kind, index, part.type === "refusal" ? part.refusal : part.text);
    }
  }

  #wholePart(item: Item, kind: string, index: number, value: Json | undefined): void {
    const part = `${kind} ${index}`;
    const whole = text(value);
    if (item.begun.has(part) || whole === "" || !PARTS.has(kind)) return;
    const isNext = item.begun.size > 0;
    item.begun.add(part);
    this.#content(item, kind, whole, isNext);
  }

  /** Ends the reasoning before the next item. `message` is the item, if it is a message. */
  #sign(message?: JsonObject): void {
    const ended = this.#ended;
    if (ended === undefined) return;
    this.#ended = undefined;
    const id = text(message?.id);
    const phase = text(message?.phase);
    const mark = writeReasoningMark(
      { ...ended, ...(id !== "" && { message: { id, ...(phase !== "" && { phase }) } }) },
      this.#owner,
    );
    const isShown = this.#hasThinking;
    this.#hasThinking = false;
    this.#emit(isShown ? { type: "thinking-signature", signature: mark } : { type: "redacted-thinking", data: mark });
  }

  /** `ending` is the name of the event, if the response does not say its own status. */
  #finish(response: JsonObject, ending: string): void {
    const status = text(response.status) || (ending === "done" ? "completed" : ending);
    if (isJsonObject(response.error)) {
      this.#fail(response);
      return;
    }
    // Some servers send the output only here, or parts of it. Others leave it out here.
    const isFirst = this.#items.size === 0;
    for (const item of Array.isArray(response.output) ? (response.output as readonly Json[]) : []) {
      const event = { output_index: isFirst ? this.#items.size : undefined, item };
      const known = isFirst ? this.#open(event) : this.#find(event);
      if (known) this.#close(known, item);
    }
    this.#sign();
    for (const item of new Set(this.#items.values())) {
      if (item.kind !== "call" || item.isDone) continue;
      if (item.call === undefined) this.#hasNamelessCall = true;
      else this.#emit({ type: "tool-end", call: item.call });
    }
    const usage = usageOf(response.usage);
    if (usage) this.#emit({ type: "usage", usage });
    if (status !== "completed" && status !== "incomplete") {
      this.#emit(upstreamFailure("The provider ended its answer early."));
    } else if (this.#hasNamelessCall) {
      this.#emit(upstreamFailure("The provider's answer has a tool call without a name."));
    } else {
      const content = { toolCalls: this.#calls > 0, refused: this.#refused };
      const reason = status === "incomplete" ? incompleteReason(response.incomplete_details) : settleFinishReason("end", content);
      this.#emit({ type: "finish", reason });
    }
  }

  #fail(value: JsonObject): void {
    this.#emit({ type: "error", error: readResponsesError(value) });
  }
}

/** The parts of items that carry content. */
const PARTS: ReadonlySet<string> = new Set([
  "output_text",
  "refusal",
  "reasoning_summary_text",
  "reasoning_text",
  "function_call_arguments",
]);

/** Codes of the vendor for which other protocols have no names: the list of `ResponseError.code`. */
const KINDS: ReadonlyMap<string, ModelErrorKind> = new Map<string, ModelErrorKind>([
  ["server_is_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["vector_store_timeout", "timeout"],
]);
const OF_THE_REQUEST = /^(?:invalid_|image_|empty_image|unsupported_image|failed_to_download|bio_policy|misalignment_policy)/;

function readResponsesError(value: JsonObject): ModelError {
  const error = readErrorValue("chat-completions", value);
  const { code } = error;
  if (code === undefined || error.kind !== "upstream") return error;
  const kind = KINDS.get(code) ?? (OF_THE_REQUEST.test(code) ? "invalid-request" : undefined);
  return kind ? { ...error, kind } : error;
}

/** The API's other reason is `max_output_tokens`: BerriAI/litellm#37710, langchain4j/langchain4j#6182. */
function incompleteReason(details: Json | undefined): FinishReason {
  return isJsonObject(details) && details.reason === "content_filter" ? "refusal" : "length";
}

/** The same counts as those of Chat Completions, under other names. */
function usageOf(value: Json | undefined): Extract<ModelEvent, { type: "usage" }>["usage"] | undefined {
  if (!isJsonObject(value)) return undefined;
  return readChatUsage({
    prompt_tokens: value.input_tokens,
    completion_tokens: value.output_tokens,
    total_tokens: value.total_tokens,
    prompt_tokens_details: value.input_tokens_details,
    completion_tokens_details: value.output_tokens_details,
  });
}

/** What names the item of an event: its index before its id. */
function keysOf(event: JsonObject): readonly (number | string)[] {
  const { output_index: index, item } = event;
  const id = text(event.item_id) || (isJsonObject(item) ? text(item.id) : "");
  const keys = [...(typeof index === "number" ? [index] : []), ...(id === "" ? [] : [id])];
  return keys.length > 0 ? keys : [""];
}

function kindOf(type: Json | undefined): Item["kind"] {
  if (type === "message" || type === "reasoning") return type;
  return type === "function_call" ? "call" : "ignored";
}

/** The type of the item to which an event belongs that no other event announced. */
function itemTypeOf(event: string): string {
  if (event.startsWith("response.reasoning")) return "reasoning";
  return event.startsWith("response.function_call") ? "function_call" : "message";
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
