import { createHash } from "node:crypto";
import { createReadStream, mkdirSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { finished } from "node:stream/promises";
import { ReadableStream } from "node:stream/web";
import { createGunzip } from "node:zlib";
import { createTarDecoder, type TarHeader } from "modern-tar";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { printable } from "../terminal.ts";
import { ARCHIVE_FORMAT, type EntryIndex, HEAD, headSchema, isEntryName, parseJson } from "./archive-format.ts";

/**
 * Write all entries of an archive below a folder, and into the index. Only regular files of names that a backup writes are accepted: no
 * link, and no path that leaves the folder. Throws CommandFailed: 66, 78 for an archive of a newer format, and the errors of the disk.
 */
export async function extractArchive(file: string, folder: string, index: EntryIndex): Promise<void> {
  let isFirst = true;
  for await (const { header, body } of readArchive(file)) {
    const { name, size, type, mtime } = header;
    if (isFirst !== (name === HEAD)) throw refused(file, isFirst ? "it is not a backup of portico" : `${HEAD} occurs twice`);
    if (type !== "file" || !isEntryName(name)) {
      throw refused(file, `no backup contains an entry such as "${printable(name)}" (${type})`);
    }
    if (index.find(name)) throw refused(file, `${name} occurs twice`);
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const sha256 = await write(path, body);
    index.add({ name, size, sha256, modifiedAt: Math.max(0, mtime?.getTime() ?? 0) });
    if (isFirst) checkHead(file, await readFile(path, "utf8"));
    isFirst = false;
  }
  if (isFirst) throw refused(file, "it is not a backup of portico");
}

/** A line about an archive that is not one of a backup. */
export function refused(file: string, reason: string): CommandFailed {
  return new CommandFailed(`The archive ${file} is refused: ${reason}`, EXIT.noInput);
}

function checkHead(file: string, text: string): void {
  const head = parseJson(headSchema, text);
  if (!head) throw refused(file, "its first entry cannot be read");
  if (head.format <= ARCHIVE_FORMAT) return;
  throw new CommandFailed(
    `The archive ${file} has format ${head.format}, and this version reads formats up to ${ARCHIVE_FORMAT}. Restore it with version ${printable(head.version)}, which wrote it`,
    EXIT.config,
  );
}

async function write(path: string, body: AsyncIterable<Uint8Array>): Promise<string> {
  const file = await open(path, "wx", 0o600);
  try {
    const hash = createHash("sha256");
    for await (const chunk of body) {
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}

/** One entry of an archive, as it was found. Its name may be anything. */
interface FoundEntry {
  readonly header: TarHeader;
  /** Read it to its end before the next entry. */
  readonly body: AsyncIterable<Uint8Array>;
}

const GZIP = [0x1f, 0x8b];

/** The entries of a tar file, which may be compressed. Throws CommandFailed (66) if it cannot be read, is damaged or ends too early. */
async function* readArchive(file: string): AsyncGenerator<FoundEntry, void> {
  const isGzip = await beginsLikeGzip(file);
  const source = createReadStream(file);
  const bytes = isGzip ? source.pipe(createGunzip()) : source;
  source.on("error", (error) => bytes.destroy(error));
  const decoder = createTarDecoder({ strict: true });
  // `Readable.toWeb` throws outside of any promise if its stream is cancelled while data arrives.
  const entries = ReadableStream.from<Uint8Array>(bytes).pipeThrough(decoder as never) as ReadableStream<FoundEntry>;
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
