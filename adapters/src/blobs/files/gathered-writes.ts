import type { FileHandle } from "node:fs/promises";

/** Bytes per write: small pieces would each wait for a thread of the pool. */
const GATHERED_BYTES = 512 * 1024;

/**
 * Writes a file in large pieces, one after another, while the next piece is gathered. At most two pieces are in memory. The next
 * call throws the error of a failed write.
 */
export class GatheredWrites {
  readonly #file: FileHandle;
  #gathering: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(GATHERED_BYTES);
  #spare: Buffer<ArrayBuffer> | undefined = Buffer.allocUnsafeSlow(GATHERED_BYTES);
  #length = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Resolves when the bytes are copied, so that their buffer may be reused. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length;) {
      const part = bytes.subarray(from, from + GATHERED_BYTES - this.#length);
      this.#gathering.set(part, this.#length);
      this.#length += part.length;
      from += part.length;
      if (this.#length === GATHERED_BYTES) await this.#turn();
    }
  }

  /** Resolves when all bytes are written. */
  async end(): Promise<void> {
    await this.#turn();
    await this.settled();
  }

  /** Resolves when no write is in progress any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #turn(): Promise<void> {
    await this.#writing;
    const full = this.#gathering;
    this.#gathering = this.#spare!;
    this.#spare = undefined;
    this.#writing = this.#file.writeFile(full.subarray(0, this.#length)).finally(() => (this.#spare = full));
    // The next call throws it.
    this.#writing.catch(() => {});
    this.#length = 0;
  }
}
