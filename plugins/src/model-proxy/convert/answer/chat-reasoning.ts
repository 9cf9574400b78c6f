import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { Emit } from "./answer-reader.ts";

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
