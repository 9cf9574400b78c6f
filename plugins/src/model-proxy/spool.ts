import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";

/** A temporary file for bytes that do not fit into memory. The file is unlinked immediately, so that a crash leaves no file behind. */
export interface Spool {
  append(chunk: Uint8Array): Promise<void>;
  /** Reads all appended bytes from the start. Closes the file when the stream ends or is destroyed. */
  read(): Readable;
  /** Discards the bytes. Safe to call at any time and more than once. */
  discard(): Promise<void>;
}

export async function openSpool(dir: string = tmpdir()): Promise<Spool> {
  const path = join(dir, `portico-upload-${randomUUID()}`);
  const file: FileHandle = await open(path, "wx+", 0o600);
  await unlink(path);
  let size = 0;
  let isHandedOver = false;
  return {
    async append(chunk) {
      let written = 0;
      while (written < chunk.length) {
        const { bytesWritten } = await file.write(chunk, written, chunk.length - written, size + written);
        written += bytesWritten;
      }
      size += chunk.length;
    },
    read() {
      isHandedOver = true;
      return file.createReadStream({ start: 0, highWaterMark: 256 * 1024 });
    },
    async discard() {
      if (isHandedOver) return;
      isHandedOver = true;
      await file.close();
    },
  };
}
