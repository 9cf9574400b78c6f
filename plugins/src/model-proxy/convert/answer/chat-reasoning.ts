import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { Emit } from "./answer-reader.ts";

/**
 * Reads reasoning out of Chat Completions, which has no published place for it. Vendors send the text as `reasoning_content` or
 * `reasoning`, the text again with signatures and encrypted data as `reasoning_details`, or as parts of the content.
 */
export class ChatReasoning {
  readonly #emit: Emit;
  /** Where this answer's text comes from. The same text may stand in several places, so the first one holds. */
  #source: "strings" | "details" | undefined;
  /** In a whole message each detail is a block of its own; in a stream it may be a piece of one. */
  #isWhole = false;
  /** Whether text was told on that no signature closed yet. */
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

  /** Takes a whole message, where the details are preferred because each signature stands beside its own text. */
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

  /** Takes a part of the content that holds thinking: a string, or parts of text again. */
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
        // A signature holds for the text of its own block alone.
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
