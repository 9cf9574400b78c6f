import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { orAbsent } from "./folders.ts";

const PAGE = 128;

/**
 * Keys of files that begin with `prefix`, in the folder with the key `under` and below. Holds one page of each folder on the
 * path.
 */
export async function* walkKeys(root: string, prefix: string, under: string): AsyncGenerator<string, void> {
  const folder = await opendir(join(root, under), { bufferSize: PAGE }).catch(orAbsent);
  if (folder === undefined) return;
  try {
    for (let entry = await folder.read(); entry !== null; entry = await folder.read()) {
      const key = under === "" ? entry.name : `${under}/${entry.name}`;
      // No key has a hidden segment: hidden folders, such as the one for unfinished files, are skipped.
      if (entry.name.startsWith(".") || !key.startsWith(prefix)) continue;
      if (entry.isFile()) yield key;
      if (entry.isDirectory()) yield* walkKeys(root, prefix, key);
    }
  } finally {
    await folder.close();
  }
}
