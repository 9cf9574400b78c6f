import { MOST_READERS } from "./limits.ts";

/** Counts the readers of a log. */
export class Readers {
  #count = 0;

  /** Returns the function that ends the reader, or undefined if there are too many readers. Only the first call of it counts. */
  enter(): (() => void) | undefined {
    if (this.#count >= MOST_READERS) return undefined;
    this.#count++;
    let hasLeft = false;
    return () => {
      if (!hasLeft) this.#count--;
      hasLeft = true;
    };
  }
}
