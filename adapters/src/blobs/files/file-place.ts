import { constants } from "node:fs";
import { type FileHandle, lstat, open, unlink } from "node:fs/promises";
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
      const path = await findPath(root, key);
      const file = path === undefined ? undefined : await lstat(path).catch(orAbsent);
      return file?.isFile() ? { size: file.size, modifiedAt: Math.floor(file.mtimeMs) } : undefined;
    },
    async open(key) {
      const path = await findPath(root, key);
      return path === undefined ? undefined : openFile(path);
    },
    async remove(key) {
      const path = await findPath(root, key);
      const file = path === undefined ? undefined : await lstat(path).catch(orAbsent);
      if (path === undefined || !file?.isFile()) return false;
      // Another may have been quicker.
      const isGone = await unlink(path).then(() => true, orAbsent);
      await syncFolders(root, path);
      return isGone ?? false;
    },
    async *keys(prefix) {
      const under = prefix.slice(0, Math.max(0, prefix.lastIndexOf("/")));
      if (under === "" || (await findPath(root, `${under}/x`)) !== undefined) yield* walkKeys(root, prefix, under);
    },
    close: () => temporary.close(),
  };
}

async function openFile(path: string): Promise<BlobBytes | undefined> {
  const file = await open(path, READ).catch(orAbsent);
  if (file === undefined) return undefined;
  try {
    const stat = await file.stat();
    if (stat.isFile()) return toBytes(file, stat.size);
  } catch (error) {
    await file.close();
    throw error;
  }
  return void (await file.close());
}

function toBytes(file: FileHandle, size: number): BlobBytes {
  return {
    size,
    async read(position, length) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    },
    close: () => file.close(),
  };
}
