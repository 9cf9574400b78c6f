import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { PassThrough, Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { createTarPacker } from "modern-tar";
import type { ArchivedEntry } from "./archive-format.ts";

/** Writes an archive from its first entry to its last one. Only pieces of an entry are in memory. */
export interface ArchiveWriter {
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
