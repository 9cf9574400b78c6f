import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { createGzip } from "node:zlib";
import { createTarPacker } from "modern-tar";
import type { ArchivedEntry, EntryIndex } from "./archive-format.ts";

/** Writes an archive from its first entry to its last one. Only pieces of an entry are in memory. */
interface ArchiveWriter {
  /** Add a file of exactly `size` bytes. Rejects with the error of the source or of the archive's disk. */
  add(
    about: { readonly name: string; readonly size: number; readonly modifiedAt: number },
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<ArchivedEntry>;
  /** Resolves when the whole archive is on the disk. */
  finish(): Promise<void>;
  /** Stop writing, and close the file. */
  abort(reason: unknown): Promise<void>;
}

const OWNER_ONLY = 0o600;

/** Creates a tar file, which only its owner can read. */
export function createArchiveWriter(path: string, { gzip }: { readonly gzip: boolean }): ArchiveWriter {
  const { readable, controller } = createTarPacker();
  const compressed = gzip ? createGzip() : new PassThrough();
  const file = createWriteStream(path, { flags: "wx", mode: OWNER_ONLY });
  const written = pipeline(Readable.fromWeb(readable as ReadableStream), compressed, file);
  const failure = written.then(
    () => undefined,
    (error: unknown) => error,
  );
  return {
    async add({ name, size, modifiedAt }, bytes) {
      try {
        const body = controller.add({ name, size, mode: OWNER_ONLY, mtime: new Date(modifiedAt), type: "file" }).getWriter();
        const hash = createHash("sha256");
        for await (const chunk of bytes) {
          hash.update(chunk);
          await body.write(chunk);
        }
        await body.close();
        return { name, size, modifiedAt, sha256: hash.digest("hex") };
      } catch (error) {
        controller.error(error);
        // If the disk failed first, its error says more.
        throw (await failure) ?? error;
      }
    },
    async finish() {
      controller.finalize();
      await written;
      const archive = await open(path, "r");
      try {
        await archive.sync();
      } finally {
        await archive.close();
      }
    },
    async abort(reason) {
      controller.error(reason);
      await failure;
    },
  };
}

/** What a backup is written to. */
export interface BackupTarget {
  readonly writer: ArchiveWriter;
  /** The entries that the manifest will name. */
  readonly index: EntryIndex;
  /** An unused path for a temporary file. */
  newPath(): string;
}

/** Add a file that is only replaced and never written in place. Returns false if it does not exist. */
export async function addFile({ writer, index }: BackupTarget, name: string, path: string): Promise<boolean> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!file) return false;
  try {
    const { size, mtimeMs } = await file.stat();
    const bytes = file.createReadStream({ autoClose: false });
    index.add(await writer.add({ name, size, modifiedAt: Math.floor(mtimeMs) }, bytes));
    return true;
  } finally {
    await file.close();
  }
}
