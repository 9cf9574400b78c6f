import type { FileHandle } from "node:fs/promises";

/** So much is written at once: small pieces would each wait for a thread of the pool. */
const GATHERED_BYTES = 512 * 1024;

/**
 * Writes to a file in large pieces, one behind the other, while the next piece is gathered: at most two are in memory. What fails is told by the
 * next call.
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

  /** Resolves when the bytes are taken, and may be used for something else. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length;) {
      const part = bytes.subarray(from, from + GATHERED_BYTES - this.#length);
      this.#gathering.set(part, this.#length);
      this.#length += part.length;
      from += part.length;
      if (this.#length === GATHERED_BYTES) await this.#turn();
    }
  }

  /** Resolves when everything is written. */
  async end(): Promise<void> {
    await this.#turn();
    await this.settled();
  }

  /** Resolves when nothing is being written any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #turn(): Promise<void> {
    await this.#writing;
    const full = this.#gathering;
    this.#gathering = this.#spare!;
    this.#spare = undefined;
    this.#writing = this.#file.writeFile(full.subarray(0, this.#length)).finally(() => (this.#spare = full));
    // Told to whoever comes next.
    this.#writing.catch(() => {});
    this.#length = 0;
  }
}
