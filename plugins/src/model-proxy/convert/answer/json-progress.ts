const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * Follows the text of one JSON object or array that arrives in pieces, to know when it is complete. Chat Completions has no event for
 * the end of a tool call, so the arguments must show it. The text is not validated: invalid JSON may count as complete, or as never
 * complete.
 */
export class JsonProgress {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #complete = false;

  push(piece: string): void {
    for (let at = 0; at < piece.length; at += 1) {
      const unit = piece.charCodeAt(at);
      if (this.#inString) this.#string(unit);
      else if (unit === QUOTE) this.#inString = true;
      else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) this.#depth += 1;
      else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
        this.#depth -= 1;
        if (this.#depth <= 0) this.#complete = true;
      }
    }
  }

  /** Whether the outermost bracket has been closed. */
  get complete(): boolean {
    return this.#complete;
  }

  #string(unit: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (unit === BACKSLASH) this.#escaped = true;
    else if (unit === QUOTE) this.#inString = false;
  }
}
