import { close, constants, fstatSync, open, read } from "node:fs";
import { lstat, unlink } from "node:fs/promises";
import { promisify } from "node:util";
import type { BlobBytes, BlobPlace } from "../blob-place.ts";
import { createFileDraft } from "./file-draft.ts";
import { findPath, orAbsent, syncFolders } from "./folders.ts";
import type { TemporaryFolder } from "./temporary-folder.ts";
import { walkKeys } from "./walk-keys.ts";

// Not following a link that somebody put there, and not waiting for the other end of a pipe.
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Blobs that are files below `root`, which is a real path. */
export function filePlace(root: string, temporary: TemporaryFolder): BlobPlace {
  return {
    draft: (key) => createFileDraft(root, temporary.newPath(), key),
    async find(key) {
      const path = findPath(root, key);
      const file = path === undefined ? undefined : await lstat(path).catch(orAbsent);
      return file?.isFile() ? { size: file.size, modifiedAt: Math.floor(file.mtimeMs) } : undefined;
    },
    async open(key) {
      const path = findPath(root, key);
      return path === undefined ? undefined : openFile(path);
    },
    async remove(key) {
      const path = findPath(root, key);
      const file = path === undefined ? undefined : await lstat(path).catch(orAbsent);
      if (path === undefined || !file?.isFile()) return false;
      // Another may have been quicker.
      const isGone = await unlink(path).then(() => true, orAbsent);
      await syncFolders(root, path);
      return isGone ?? false;
    },
    async *keys(prefix) {
      const under = prefix.slice(0, Math.max(0, prefix.lastIndexOf("/")));
      if (under === "" || findPath(root, `${under}/x`) !== undefined) yield* walkKeys(root, prefix, under);
    },
    close: () => temporary.close(),
  };
}

async function openFile(path: string): Promise<BlobBytes | undefined> {
  const file = await openDescriptor(path, READ).catch(orAbsent);
  if (file === undefined) return undefined;
  try {
    const stat = fstatSync(file);
    if (stat.isFile()) return toBytes(file, stat.size);
  } catch (error) {
    await closeDescriptor(file);
    throw error;
  }
  return void (await closeDescriptor(file));
}

function toBytes(file: number, size: number): BlobBytes {
  return {
    size,
    async read(position, length) {
      const { bytesRead, buffer } = await readDescriptor(file, Buffer.allocUnsafeSlow(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    },
    close: () => closeDescriptor(file),
  };
}

// Descriptors, since a FileHandle costs a small read half as much again.
const openDescriptor = promisify(open);
const readDescriptor = promisify(read);
const closeDescriptor = promisify(close);
