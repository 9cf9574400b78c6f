/** Characters of a line by default, so that a service cannot fill the memory. */
const LINE_CHARACTERS = 16 * 1024 * 1024;

/**
 * The lines of a stream of bytes in UTF-8, without their ends, as they arrive. The last line counts without an end, too. Empty lines are left
 * out. Leaving the loop destroys the stream.
 * @throws RangeError for a line of more than `most` characters. Throws as the stream does.
 */
export async function* readLines(bytes: AsyncIterable<unknown>, most: number = LINE_CHARACTERS): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let line: string[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    for (const [at, piece] of decoder
      .decode(chunk as Uint8Array, { stream: true })
      .split("\n")
      .entries()) {
      if (at > 0) {
        yield* textOf(line);
        line = [];
        length = 0;
      }
      line.push(piece);
      length += piece.length;
      if (length > most) throw new RangeError(`A line has more than ${most} characters`);
    }
  }
  yield* textOf([...line, decoder.decode()]);
}

function* textOf(pieces: readonly string[]): Generator<string> {
  const line = pieces.join("").replace(/\r$/, "");
  if (line !== "") yield line;
}
