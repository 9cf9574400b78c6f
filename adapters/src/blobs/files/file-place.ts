import { close, closeSync, constants, fstatSync, lstatSync, openSync, read, type Stats } from "node:fs";
import { lstat, unlink } from "node:fs/promises";
import { promisify } from "node:util";
import type { BlobBytes, BlobPlace } from "../blob-place.ts";
import { createFileDraft } from "./file-draft.ts";
import { findPath, orAbsent, syncFolders } from "./folders.ts";
import type { TemporaryFolder } from "./temporary-folder.ts";
import { walkKeys } from "./walk-keys.ts";

// Does not follow a link that another program placed there, and does not wait for the other end of a pipe.
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Blobs as files below `root`, which is a real path. */
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
      // Another caller may have removed it first.
      const isGone = await unlink(path).then(() => true, orAbsent);
      await syncFolders(root, path);
      return isGone ?? false;
    },
    async *keys(prefix) {
      const under = prefix.slice(0, Math.max(0, prefix.lastIndexOf("/")));
      if (under === "" || findPath(root, `${under}/x`) !== undefined) yield* walkKeys(root, prefix, under);
    },
    async locate(key) {
      const path = findPath(root, key);
      const file = path === undefined ? undefined : statFile(path);
      return file?.isFile() ? { size: file.size, path: key } : undefined;
    },
    close: () => temporary.close(),
  };
}

/**
 * Synchronous, as `findPath`: it waits for the disk to find the file, not for its bytes. Three threads of the pool cost more than
 * a small answer.
 */
function openFile(path: string): BlobBytes | undefined {
  let file: number;
  try {
    file = openSync(path, READ);
  } catch (error) {
    return orAbsent(error);
  }
  try {
    const stat = fstatSync(file);
    if (stat.isFile()) return toBytes(file, stat.size);
  } catch (error) {
    closeSync(file);
    throw error;
  }
  return void closeSync(file);
}

/** Synchronous, as `openFile`. */
function statFile(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    return orAbsent(error);
  }
}

function toBytes(file: number, size: number): BlobBytes {
  return {
    size,
    async read(position, length) {
      const { bytesRead, buffer } = await readDescriptor(file, Buffer.allocUnsafeSlow(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    },
    close: () => closeFile(file),
  };
}

/**
 * Uses a thread of the pool only if this reader is the last one of a removed file: freeing its bytes may take the disk a while.
 */
async function closeFile(file: number): Promise<void> {
  if (fstatSync(file).nlink === 0) await closeDescriptor(file);
  else closeSync(file);
}

// Descriptors, because a FileHandle makes a small read about 50 % slower.
const readDescriptor = promisify(read);
const closeDescriptor = promisify(close);
