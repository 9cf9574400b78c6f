/**
 * A JSON answer that is made piece by piece, for answers that grow with what is stored: a handler of a `json` route returns it in place of
 * the value. The pieces together are one JSON text that fits the route's schema; nobody checks that. The next is asked for when there is
 * room for it; when the reader leaves, the source's `return` runs. A source that breaks breaks the answer, which is then no JSON.
 */
export class JsonPieces implements AsyncIterable<string> {
  readonly #pieces: AsyncIterable<string>;

  constructor(pieces: AsyncIterable<string>) {
    this.#pieces = pieces;
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.#pieces[Symbol.asyncIterator]();
  }

  /** The answer's body. `ended` is told once: with the error if the source broke, without one otherwise. */
  toStream(ended: (error?: unknown) => void): ReadableStream<Uint8Array> {
    const iterator = this.#pieces[Symbol.asyncIterator]();
    const encoder = new TextEncoder();
    let isOver = false;
    const over = (error?: unknown) => {
      if (!isOver) ended(error);
      isOver = true;
    };
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const next = await iterator.next();
            // The reader left while this piece was made.
            if (isOver) return;
            if (!next.done) return controller.enqueue(encoder.encode(next.value));
            over();
            controller.close();
          } catch (error) {
            over(error);
            controller.error(error);
          }
        },
        async cancel() {
          over();
          await iterator.return?.();
        },
      },
      { highWaterMark: 0 },
    );
  }
}
