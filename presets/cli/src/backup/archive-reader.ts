import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { createGunzip } from "node:zlib";
import { createTarDecoder, type TarHeader } from "modern-tar";
import { CommandFailed, EXIT } from "../exit-codes.ts";

/** One entry of an archive, as it was found. Its name may be anything. */
export interface FoundEntry {
  readonly header: TarHeader;
  /** Read it to its end before the next entry. */
  readonly body: AsyncIterable<Uint8Array>;
}

const GZIP = [0x1f, 0x8b];

/** The entries of a tar file, which may be compressed. Throws CommandFailed (66) if it cannot be read, is damaged or ends too early. */
export async function* readArchive(file: string): AsyncGenerator<FoundEntry, void> {
  const isGzip = await beginsLikeGzip(file);
  const source = createReadStream(file);
  const bytes = isGzip ? source.pipe(createGunzip()) : source;
  source.on("error", (error) => bytes.destroy(error));
  const decoder = createTarDecoder({ strict: true });
  const entries = (Readable.toWeb(bytes) as ReadableStream<Uint8Array>).pipeThrough(
    decoder as never,
  ) as ReadableStream<FoundEntry>;
  const reader = entries.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield { header: value.header, body: orDamaged(file, value.body) };
    }
  } catch (cause) {
    if (cause instanceof CommandFailed) throw cause;
    throw toDamaged(file, cause);
  } finally {
    await reader.cancel().catch(() => {});
    source.destroy();
    await finished(source).catch(() => {});
  }
}

/** The end of the archive may be missing within an entry. */
async function* orDamaged(file: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const chunks = body[Symbol.asyncIterator]();
  for (;;) {
    const next = await chunks.next().catch((cause: unknown) => {
      throw toDamaged(file, cause);
    });
    if (next.done) return;
    yield next.value;
  }
}

/** The line about an archive that cannot be used. */
function toDamaged(file: string, cause: unknown): CommandFailed {
  const { code } = cause as NodeJS.ErrnoException;
  const reason = code === undefined || code.startsWith("Z_") || code.startsWith("ERR_") ? "damaged, or no backup" : code;
  return new CommandFailed(`The archive ${file} cannot be read (${reason})`, EXIT.noInput, cause);
}

async function beginsLikeGzip(file: string): Promise<boolean> {
  try {
    const archive = await open(file, "r");
    try {
      const { buffer, bytesRead } = await archive.read(Buffer.alloc(GZIP.length), 0, GZIP.length, 0);
      return bytesRead === GZIP.length && GZIP.every((byte, at) => buffer[at] === byte);
    } finally {
      await archive.close();
    }
  } catch (cause) {
    throw toDamaged(file, cause);
  }
}
