import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ports } from "@portico/core";
import { isWithin, realPath } from "./real-path.ts";

interface Folder {
  readonly path: string;
  /** Prefix of its documents' names. */
  readonly prefix: string;
  /** Real paths of the parent folders, the root first. A link back to one of them is not followed. */
  readonly above: readonly [string, ...string[]];
}

/** Names of all files below a folder, at most `depth` segments long, except hidden files and links that lead outside of it. */
export async function listFolder(root: string, depth: number): Promise<string[]> {
  return listFiles({ path: root, prefix: "", above: [root] }, depth);
}

async function listFiles(folder: Folder, depth: number): Promise<string[]> {
  const found = await Promise.all((await entriesOf(folder)).map((entry) => namesOf(entry, folder, depth)));
  return found.flat();
}

async function namesOf(entry: Dirent, folder: Folder, depth: number): Promise<string[]> {
  const name = folder.prefix + entry.name;
  if (!ports.isDocumentName(name)) return [];
  const path = join(folder.path, entry.name);
  const isFile = entry.isFile();
  if (isFile) return [name];
  const deeper = (real: string): Promise<string[]> | string[] =>
    depth > 1 && !folder.above.includes(real)
      ? listFiles({ path, prefix: `${name}/`, above: [...folder.above, real] }, depth - 1)
      : [];
  if (entry.isDirectory()) return deeper(path);
  if (!entry.isSymbolicLink()) return [];
  // Configuration that is mounted into a container consists of links within its folder.
  const real = await realPath(path).catch(() => undefined);
  if (real === undefined || !isWithin(folder.above[0], real)) return [];
  const target = await stat(real).catch(() => undefined);
  if (target?.isFile()) return [name];
  return target?.isDirectory() ? deeper(real) : [];
}

/** An unreadable subfolder hides only its own documents. */
async function entriesOf({ path, prefix }: Folder): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (prefix === "" && (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return [];
  }
}
