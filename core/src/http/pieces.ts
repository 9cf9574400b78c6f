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
