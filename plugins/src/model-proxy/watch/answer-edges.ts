/** Bytes at the start that are kept: the first event of a Messages stream has the input counts. */
const HEAD_BYTES = 4 * 1024;
/** Bytes at the end that are kept: in both protocols the last events, or the last members, have the end and the usage. */
const TAIL_BYTES = 16 * 1024;

/** The first and the last bytes of an answer. They overlap if the answer is short. */
export interface EdgeTexts {
  readonly head: string;
  readonly tail: string;
}

/**
 * Keeps the first and the last bytes of an answer while it is forwarded. It searches, copies and decodes nothing until they are requested.
 * Callers must not reuse their chunks.
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

  /** The edges as text with one character per byte. JSON stays valid, and its numbers and ASCII names do not change. */
  read(): EdgeTexts {
    const tail = text(this.#tail, Math.max(0, this.#tailBytes - TAIL_BYTES));
    return { head: this.#isCut ? text(this.#head, 0, HEAD_BYTES) : tail.slice(0, HEAD_BYTES), tail };
  }
}

function text(chunks: readonly Buffer[], from: number, to?: number): string {
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return bytes.toString("latin1", from, to);
}
