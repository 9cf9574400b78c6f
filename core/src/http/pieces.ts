/** The body of an answer that is made piece by piece. Each piece is made when there is room for it. */
export interface Pieces {
  /** The next piece; undefined at the end. Rejects if the source fails, which cuts the answer. */
  next(): Promise<string | Uint8Array | undefined>;
  /** The reader has left. May be called while `next` waits, and after the end. */
  leave(): Promise<void>;
}

/** The pieces of an iterable. */
export function piecesOf(source: AsyncIterable<string>): Pieces {
  const iterator = source[Symbol.asyncIterator]();
  return {
    async next() {
      const step = await iterator.next();
      return step.done ? undefined : step.value;
    },
    async leave() {
      await iterator.return?.();
    },
  };
}

/** First the pieces that were already read, then the rest. */
export function withFirst(first: readonly (string | Uint8Array)[], rest: Pieces): Pieces {
  const waiting = [...first];
  return {
    next: () => (waiting.length > 0 ? Promise.resolve(waiting.shift()) : rest.next()),
    leave: () => rest.leave(),
  };
}

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

const PIECE_CHARACTERS = 64 * 1024;

/**
 * `{"name":[…]}`, page by page, for a `json` route. A long list is never held in memory, and a short one is sent in one piece.
 */
export function jsonList(name: string, pages: AsyncIterable<readonly unknown[]>): JsonPieces {
  return new JsonPieces(
    (async function* () {
      let [text, separator] = [`{"${name}":[`, ""];
      for await (const page of pages) {
        for (const item of page) {
          text += separator + JSON.stringify(item);
          separator = ",";
        }
        if (text.length < PIECE_CHARACTERS) continue;
        yield text;
        text = "";
      }
      yield `${text}]}`;
    })(),
  );
}
