import type { Readable } from "node:stream";

/** Returns the first bytes of a stream (about `most`, up to one chunk more), and a stream of all bytes, including these. */
export async function peek(
  stream: Readable,
  most: number,
): Promise<{ readonly head: Uint8Array; readonly whole: AsyncIterable<Uint8Array> }> {
  const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const chunks: Uint8Array[] = [];
  let [length, isOver] = [0, false];
  while (length < most && !isOver) {
    const next = await iterator.next();
    isOver = next.done === true;
    if (next.done) break;
    chunks.push(next.value);
    length += next.value.length;
  }
  const head = Buffer.concat(chunks);
  async function* whole(): AsyncIterable<Uint8Array> {
    try {
      if (head.length > 0) yield head;
      while (!isOver) {
        const next = await iterator.next();
        if (next.done) return;
        yield next.value;
      }
    } finally {
      // If the reader stops early, the upload is ended.
      stream.destroy();
    }
  }
  return { head, whole: whole() };
}
