import { link, lstat, open, rename, unlink } from "node:fs/promises";
import { ports } from "@portico/core";
import type { BlobDraft } from "../blob-place.ts";
import { GatheredWrites } from "./gathered-writes.ts";
import { makePath, orAbsent, syncFolders } from "./folders.ts";

/** A file at `draft` that will move to the path of `key` below `root`, in the same file system. */
export async function createFileDraft(root: string, draft: string, key: string): Promise<BlobDraft> {
  const file = await open(draft, "wx", 0o600);
  const writes = new GatheredWrites(file);
  return {
    write: (chunk) => writes.write(chunk),
    async place(ifAbsent) {
      await writes.end();
      // Synced before it gets its name: a crash must not leave a name without its bytes.
      await file.sync();
      await file.close();
      const path = await makePath(root, key);
      if (ifAbsent) await placeNew(draft, path);
      else await rename(draft, path);
      await syncFolders(root, path);
    },
    async discard() {
      await writes.settled().catch(() => {});
      await file.close();
      await unlink(draft);
    },
  };
}

/** Unlike a rename, a link never replaces a file that another process created in between. */
async function placeNew(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    // A folder or a link at that path is not a blob. A caller that gets BlobExists would try to read it.
    if ((await lstat(path).catch(orAbsent))?.isFile() === false) throw error;
    throw new ports.BlobExists("There is a blob of that key");
  }
  // The blob exists now. Remains of the draft are removed with their folder.
  await unlink(draft).catch(() => {});
}
