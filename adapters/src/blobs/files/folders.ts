import { lstatSync } from "node:fs";
import { lstat, mkdir, open, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ports } from "@portico/core";

/**
 * Errors for a path that does not exist, also behind a link. `ENOTDIR` is another error: `findPath` has found the folders of the path, so the
 * root itself is not a folder.
 */
const ABSENT: ReadonlySet<unknown> = new Set(["ENOENT", "ELOOP"]);

/** For `catch`: undefined if the path does not exist. */
export function orAbsent(error: unknown): undefined {
  if (!ABSENT.has((error as NodeJS.ErrnoException).code)) throw error;
}

/** Create the folder durably, and return its real path. */
export async function makeRoot(path: string): Promise<string> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  for (let made = path; first !== undefined && made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
  return realpath(path);
}

/**
 * The path of a key, if all its parents are folders and not links. Synchronous, because it takes less time than a thread of the
 * pool.
 */
export function findPath(root: string, key: string): string | undefined {
  for (let end = key.indexOf("/"); end >= 0; end = key.indexOf("/", end + 1)) {
    if (!isFolder(join(root, key.slice(0, end)))) return undefined;
  }
  return join(root, key);
}

/** The path of a key. Creates all its parent folders. Throws BlobsUnavailable if one of them is a link or a file. */
export async function makePath(root: string, key: string): Promise<string> {
  let path = root;
  for (const segment of key.split("/").slice(0, -1)) {
    path = join(path, segment);
    await mkdir(path, { mode: 0o700 }).catch(ifNotThere);
    if (!(await lstat(path)).isDirectory()) throw new ports.BlobsUnavailable("A folder of the blobs is a file or a link");
  }
  return join(root, key);
}

/** A new name is durable only when its folder is synced. The same holds for the folder's own name in its parent. */
export async function syncFolders(root: string, path: string): Promise<void> {
  for (let folder = dirname(path); folder.length >= root.length; folder = dirname(folder)) {
    await syncFolder(folder);
    if (folder === root) return;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch (error) {
    return orAbsent(error) ?? false;
  }
}

function ifNotThere(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
}
