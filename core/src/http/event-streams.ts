/** The open event streams of one surface. Without `end`, they end with their source or reader, which may be never. */
export class EventStreams {
  readonly #open = new Set<() => void>();
  #isEnded = false;

  /** Adds an open stream. `end` is called once to end it. Returns a function for the answer to call when the stream has ended. */
  add(end: () => void): () => void {
    if (this.#isEnded) end();
    else this.#open.add(end);
    return () => void this.#open.delete(end);
  }

  /** End all open streams, and from now on every new one at once. */
  end(): void {
    this.#isEnded = true;
    for (const end of this.#open) end();
  }
}
