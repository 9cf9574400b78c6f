/** The open event streams of one surface. They end when their sources do or their readers leave, and that may be never. */
export class EventStreams {
  readonly #open = new Set<() => void>();
  #isEnded = false;

  /** A stream is open; `end` is called, once, when it is to end. The answer says that it is over. */
  add(end: () => void): () => void {
    if (this.#isEnded) end();
    else this.#open.add(end);
    return () => void this.#open.delete(end);
  }

  /** End those that are open, and from now on each that opens. */
  end(): void {
    this.#isEnded = true;
    for (const end of this.#open) end();
  }
}
