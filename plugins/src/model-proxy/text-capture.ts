import { Buffer } from "node:buffer";

const CLOSED = -1;
const BACKSLASH = 0x5c;

/**
 * Captures the content of one JSON string, which may begin in one chunk and end in another. Positions are indexes into the present chunk.
 * It does not validate: callers must check the grammar before decoding.
 */
export class TextCapture {
  #from = CLOSED;
  #earlier: Buffer | undefined;

  get isOpen(): boolean {
    return this.#from !== CLOSED;
  }

  /** The string's first byte after the quote is at `from`. */
  open(from: number): void {
    this.#from = from;
  }

  close(): void {
    this.#from = CLOSED;
    this.#earlier = undefined;
  }

  /** Bytes of the string before `to`. */
  length(to: number): number {
    return (this.#earlier?.length ?? 0) + to - this.#from;
  }

  /** Called at the end of a chunk inside the string. Copies its part of the string, because the chunk may be reused. */
  carry(chunk: Uint8Array): void {
    const piece = chunk.subarray(this.#from);
    this.#earlier = Buffer.concat(this.#earlier === undefined ? [piece] : [this.#earlier, piece]);
    this.#from = 0;
  }

  /** The decoded string, which ends before `to`. */
  text(chunk: Uint8Array, to: number): string {
    const piece = Buffer.from(chunk.buffer, chunk.byteOffset + this.#from, to - this.#from);
    const text = (this.#earlier === undefined ? piece : Buffer.concat([this.#earlier, piece])).toString("utf8");
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** Whether the string, which ends before `to`, is this ASCII word. Decodes, which is slow, only if necessary. */
  spells(word: string, chunk: Uint8Array, to: number): boolean {
    if (this.#earlier !== undefined) return this.text(chunk, to) === word;
    if (to - this.#from < word.length) return false;
    // A string of the same length as the word cannot contain an escape. A longer string equals the word only if it contains one.
    if (to - this.#from > word.length) return this.#hasEscape(chunk, to) && this.text(chunk, to) === word;
    for (let index = 0; index < word.length; index += 1) {
      if (chunk[this.#from + index] !== word.charCodeAt(index)) return false;
    }
    return true;
  }

  #hasEscape(chunk: Uint8Array, to: number): boolean {
    for (let at = this.#from; at < to; at += 1) if (chunk[at] === BACKSLASH) return true;
    return false;
  }
}
