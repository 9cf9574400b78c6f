/** Where a Messages stream says what its request took: in its first event. */
const HEAD_BYTES = 4 * 1024;
/** Where both protocols say how an answer ended and what it took: in the last events, or the last members. */
const TAIL_BYTES = 16 * 1024;

/** The first and the last bytes of an answer; they overlap where it is short. */
export interface EdgeTexts {
  readonly head: string;
  readonly tail: string;
}

/**
 * Keeps the first and the last bytes of an answer that passes, without looking at them: nothing is searched, copied or decoded before somebody
 * asks. Callers must not reuse their chunks.
 */
export class AnswerEdges {
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  readonly #tail: Buffer[] = [];
  #tailBytes = 0;
  #isCut = false;

  push(chunk: Buffer): void {
    if (this.#headBytes < HEAD_BYTES) {
      this.#head.push(chunk);
      this.#headBytes += chunk.length;
    }
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    while (this.#tailBytes - this.#tail[0]!.length >= TAIL_BYTES) {
      this.#tailBytes -= this.#tail.shift()!.length;
      this.#isCut = true;
    }
  }

  /** As text of one character per byte: JSON stays JSON, and its numbers and names stay what they are. */
  read(): EdgeTexts {
    const tail = text(this.#tail, Math.max(0, this.#tailBytes - TAIL_BYTES));
    return { head: this.#isCut ? text(this.#head, 0, HEAD_BYTES) : tail.slice(0, HEAD_BYTES), tail };
  }
}

function text(chunks: readonly Buffer[], from: number, to?: number): string {
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return bytes.toString("latin1", from, to);
}
