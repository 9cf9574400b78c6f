/**
 * A JSON answer that is made piece by piece, for answers that grow with the stored data. A handler of a `json` route returns it
 * in place of the value. All pieces together must be one JSON text that fits the route's schema; this is not checked. The next
 * piece is requested when there is room for it. When the reader leaves, the source's `return` runs. If the source fails, the
 * answer breaks off and is invalid JSON.
 */
export class JsonPieces implements AsyncIterable<string> {
  readonly #pieces: AsyncIterable<string>;

  constructor(pieces: AsyncIterable<string>) {
    this.#pieces = pieces;
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return this.#pieces[Symbol.asyncIterator]();
  }
}
