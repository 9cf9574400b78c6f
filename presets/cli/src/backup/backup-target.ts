import { open } from "node:fs/promises";
import type { ArchiveWriter } from "./archive-writer.ts";
import type { EntryIndex } from "./entry-index.ts";

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
