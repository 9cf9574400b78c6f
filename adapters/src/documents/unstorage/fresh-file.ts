import { createHash, randomBytes } from "node:crypto";
import { linkSync, renameSync, unlinkSync } from "node:fs";
import { type FileHandle, open, readdir, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ports } from "@portico/core";
import { isAbsent } from "./real-path.ts";

/** A text that is stored durably under a temporary name before it gets its final one. */
export interface FreshFile {
  /** Replace the existing file. */
  place(): void;
  /** Become a new file. Throws DocumentConflict if the file exists. */
  placeNew(): void;
  /** Remove the temporary file. Does nothing once placed. */
  discard(): void;
}

/** Longer than any write takes: a killed process left an older file. */
const LEFT_BEHIND_MS = 60_000;
/** Some file systems have no links. There, a new file is placed like any other. */
const NO_LINKS: ReadonlySet<unknown> = new Set(["EPERM", "ENOTSUP", "ENOSYS", "EOPNOTSUPP"]);

/** Write a text next to `path`, hidden and in the same folder: only there a rename is atomic. Mode and owner are kept. */
export async function createFreshFile(path: string, text: string): Promise<FreshFile> {
  const before = await stat(path).catch(() => undefined);
  const fresh = `${freshPrefix(path)}${randomBytes(8).toString("hex")}`;
  const file = await open(fresh, "wx", before ? before.mode & 0o777 : 0o644);
  try {
    if (before) await keepOwner(file, before);
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await file.close();
    await unlink(fresh).catch(() => {});
    throw error;
  }
  await file.close();
  return {
    place: () => renameSync(fresh, path),
    placeNew: () => placeNew(fresh, path),
    discard() {
      try {
        unlinkSync(fresh);
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
    },
  };
}

/** The name under which processes claim a document while they change it. */
export function claimOf(path: string): string {
  return `${freshPrefix(path)}claim`;
}

/** Remove the temporary files that killed processes left for this document, except its claim: the next process that claims it does so. */
export async function sweepFreshFiles(path: string): Promise<void> {
  const folder = dirname(path);
  const prefix = basename(freshPrefix(path));
  const claim = basename(claimOf(path));
  for (const name of (await readdir(folder)).filter((name) => name.startsWith(prefix) && name !== claim)) {
    const left = await stat(join(folder, name)).catch(() => undefined);
    if (left && left.mtimeMs < Date.now() - LEFT_BEHIND_MS) await unlink(join(folder, name)).catch(() => {});
  }
}

/** The new name is durable only when its folder is synced. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function placeNew(fresh: string, path: string): void {
  try {
    // Unlike a rename, a link never replaces a file that another program created in between.
    linkSync(fresh, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw new ports.DocumentConflict("A document of that name was made meanwhile");
    if (!NO_LINKS.has(code)) throw error;
    return renameSync(fresh, path);
  }
  unlinkSync(fresh);
}

/** Keeps the owner of a file if this process may change owners. */
async function keepOwner(file: FileHandle, { mode, uid, gid }: { mode: number; uid: number; gid: number }): Promise<void> {
  await file.chown(uid, gid).catch(() => {});
  await file.chmod(mode & 0o777);
}

/**
 * Of fixed length, because the document's own name may have the maximum length. It begins with a dot, so it is not a document.
 */
function freshPrefix(path: string): string {
  const digest = createHash("sha256").update(basename(path)).digest("hex").slice(0, 16);
  return join(dirname(path), `.portico-${digest}-`);
}
