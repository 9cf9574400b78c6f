import { upstreamFailure } from "../errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { FinishReason, Usage } from "../model-events.ts";
import { isFailedBase, readErrorValue, sentenceIn } from "../read-upstream-error.ts";
import type { AnswerReader, Emit } from "./answer-reader.ts";
import { ChatToolCalls } from "./chat-tool-calls.ts";
import { isBrokenFinish, readFinishReason, settleFinishReason } from "./finish-reason.ts";
import { mergeUsage, readChatUsage } from "./usage.ts";

/** Reads an answer in Chat Completions: its chunks one by one, or the one message of a whole answer. */
export class ChatAnswer implements AnswerReader {
  readonly #emit: Emit;
  readonly #tools: ChatToolCalls;
  readonly #reasoning: ChatReasoning;
  #started = false;
  #hasContent = false;
  #refused = false;
  #usage: Usage | undefined;
  #finish: FinishReason | undefined;

  constructor(take: Emit) {
    const emit: Emit = (event) => {
      this.#hasContent ||= event.type !== "start";
      take(event);
    };
    this.#emit = emit;
    this.#tools = new ChatToolCalls(emit);
    this.#reasoning = new ChatReasoning((event) => {
      this.#tools.settle();
      emit(event);
    });
  }

  knows(name: string): boolean {
    return name === "message" || name === "error";
  }

  read(chunk: JsonObject, name: string | undefined): void {
    if (isError(chunk, name)) {
      this.#fail(chunk);
      return;
    }
    if (!this.#started) this.#start(chunk);
    const choice = firstChoice(chunk.choices);
    // Some vendors send the usage in every chunk, with cumulative counts, and some inside the choice. The last counts are valid.
    this.#usage = mergeUsage(this.#usage, readChatUsage(chunk.usage ?? choice?.usage));
    if (choice === undefined) {
      // Counts without a choice come last. Some vendors send nothing after them, and keep the connection open (maximhq/bifrost#6784).
      if (this.#finish !== undefined && isJsonObject(chunk.usage)) this.close(true);
      return;
    }
    if (isJsonObject(choice.error)) {
      this.#fail(choice);
      return;
    }
    if (isJsonObject(choice.delta)) {
      this.#reasoning.read(choice.delta);
      this.#content(choice.delta);
    } else if (isJsonObject(choice.message) && !this.#hasContent && !this.#tools.hasBegun) {
      // The only event of a pretended stream. After deltas, a message repeats them (abundantbeing/hermes-browser-extension#11).
      this.#reasoning.readWhole(choice.message);
      this.#content(choice.message);
    }
    this.#finishReason(choice.finish_reason);
  }

  /** Takes a whole answer instead of chunks. */
  readWhole(body: JsonObject): void {
    if (isError(body, undefined)) {
      this.#fail(body);
      return;
    }
    const choice = firstChoice(body.choices);
    if (choice === undefined || !isJsonObject(choice.message)) {
      // Some services answer with status 200 and an error in their own form.
      if (sentenceIn(body) === undefined) this.#emit(upstreamFailure("The provider's answer has no message."));
      else this.#fail(body);
      return;
    }
    this.#start(body);
    this.#usage = readChatUsage(body.usage ?? choice.usage);
    this.#reasoning.readWhole(choice.message);
    this.#content(choice.message);
    this.#finishReason(choice.finish_reason);
    this.close(true);
  }

  close(marked: boolean): void {
    // An end without a reason completes only an answer with content.
    const cut = this.#finish === undefined && !(marked && (this.#hasContent || this.#tools.hasBegun));
    // If the answer was cut, its tool calls stay unclosed, so that an incomplete call does not look complete.
    const named = cut || this.#tools.close();
    if (this.#usage !== undefined) this.#emit({ type: "usage", usage: this.#usage });
    if (cut) {
      this.#emit(upstreamFailure("The provider's stream ended before its answer was complete."));
      return;
    }
    if (!named) {
      this.#emit(upstreamFailure("The provider's answer has a tool call without a name."));
      return;
    }
    const content = { toolCalls: this.#tools.count > 0, refused: this.#refused };
    this.#emit({ type: "finish", reason: settleFinishReason(this.#finish ?? "end", content) });
  }

  #start(body: JsonObject): void {
    this.#started = true;
    this.#emit({ type: "start", model: typeof body.model === "string" ? body.model : undefined });
  }

  #content(delta: JsonObject): void {
    const { content } = delta;
    if (typeof content === "string") this.#text(content);
    else if (Array.isArray(content)) for (const part of content as readonly Json[]) this.#part(part);
    this.#refusal(delta.refusal);
    if (delta.tool_calls !== undefined) this.#tools.read(delta.tool_calls);
    if (delta.function_call !== undefined) this.#tools.readLegacy(delta.function_call);
  }

  #part(part: Json): void {
    if (typeof part === "string") {
      this.#text(part);
      return;
    }
    if (!isJsonObject(part)) return;
    if (part.type === "text" && typeof part.text === "string") this.#text(part.text);
    else if (part.type === "refusal") this.#refusal(part.refusal);
    else if (part.type === "thinking") this.#reasoning.readPart(part);
  }

  #text(text: string): void {
    if (text === "") return;
    this.#tools.settle();
    this.#emit({ type: "text", text });
  }

  #refusal(text: Json | undefined): void {
    if (typeof text !== "string" || text === "") return;
    this.#refused = true;
    this.#tools.settle();
    this.#emit({ type: "refusal", text });
  }

  /** The reason is emitted at the end, because usage comes after it and some vendors send a reason with every chunk. */
  #finishReason(reason: Json | undefined): void {
    if (typeof reason !== "string" || reason === "") return;
    if (isBrokenFinish(reason)) {
      this.#emit(upstreamFailure("The provider ended its answer early."));
      return;
    }
    this.#finish = readFinishReason(reason);
  }

  #fail(value: JsonObject): void {
    this.#emit({ type: "error", error: readErrorValue("chat-completions", value) });
  }
}

/** Errors inside a stream have a member `error`, or `"object": "error"`, or the event name `error`. */
function isError(body: JsonObject, name: string | undefined): boolean {
  return (
    name === "error" ||
    body.object === "error" ||
    isJsonObject(body.error) ||
    isFailedBase(body.base_resp) ||
    (typeof body.error === "string" && body.error !== "")
  );
}

/** The choice with index 0. Convertible requests never ask for more than one. */
function firstChoice(choices: Json | undefined): JsonObject | undefined {
  if (!Array.isArray(choices)) return undefined;
  for (const choice of choices as readonly Json[]) {
    if (isJsonObject(choice) && (choice.index === 0 || typeof choice.index !== "number")) return choice;
  }
  return undefined;
}

/**
 * Reads reasoning from Chat Completions. The protocol does not specify fields for it. Vendors send the text as `reasoning_content` or
 * `reasoning`, or as parts of the content. `reasoning_details` repeat the text with signatures and encrypted data.
 */
export class ChatReasoning {
  readonly #emit: Emit;
  /** The field from which this answer's text is read. Several fields may contain the same text, so only the first one is used. */
  #source: "strings" | "details" | undefined;
  /** In a whole message each detail is a separate block. In a stream it may be a part of a block. */
  #isWhole = false;
  /** Whether text was emitted that has no signature yet. */
  #unsigned = false;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Takes one delta of a stream. */
  read(delta: JsonObject): void {
    const text = reasoningString(delta);
    if (text !== "") {
      this.#source ??= "strings";
      if (this.#source === "strings") this.#text(text);
    }
    if (Array.isArray(delta.reasoning_details)) this.#details(delta.reasoning_details as readonly Json[]);
  }

  /** Takes a whole message. It prefers the details, because they contain each signature together with its text. */
  readWhole(message: JsonObject): void {
    this.#isWhole = true;
    const details = message.reasoning_details;
    if (
      Array.isArray(details) &&
      (details as readonly Json[]).some((detail) => isJsonObject(detail) && detailText(detail) !== "")
    ) {
      this.#source = "details";
    }
    this.read(message);
  }

  /** Takes a part of the content with thinking: a string, or a list of text parts. */
  readPart(part: JsonObject): void {
    const pieces: readonly Json[] = Array.isArray(part.thinking) ? (part.thinking as readonly Json[]) : [part.thinking ?? ""];
    for (const piece of pieces) {
      this.#text(typeof piece === "string" ? piece : isJsonObject(piece) && typeof piece.text === "string" ? piece.text : "");
    }
  }

  #details(details: readonly Json[]): void {
    for (const detail of details) {
      if (!isJsonObject(detail)) continue;
      const text = detailText(detail);
      const { signature, data } = detail;
      const isSigned = typeof signature === "string" && signature !== "";
      if (text !== "") this.#source ??= "details";
      if (text !== "" && this.#source === "details") {
        // A signature is valid only for the text of its own block.
        if (this.#isWhole && this.#unsigned) this.#sign("");
        this.#text(text);
      }
      if (isSigned) this.#sign(signature);
      if (detail.type === "reasoning.encrypted" && typeof data === "string" && data !== "") {
        this.#unsigned = false;
        this.#emit({ type: "redacted-thinking", data });
      }
    }
  }

  #text(text: string): void {
    if (text === "") return;
    this.#unsigned = true;
    this.#emit({ type: "thinking", text });
  }

  #sign(signature: string): void {
    this.#unsigned = false;
    this.#emit({ type: "thinking-signature", signature });
  }
}

function reasoningString(delta: JsonObject): string {
  if (typeof delta.reasoning_content === "string" && delta.reasoning_content !== "") return delta.reasoning_content;
  return typeof delta.reasoning === "string" ? delta.reasoning : "";
}

function detailText(detail: JsonObject): string {
  if (typeof detail.text === "string") return detail.text;
  return typeof detail.summary === "string" ? detail.summary : "";
}
