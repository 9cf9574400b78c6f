import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { orAbsent } from "./folders.ts";

const PAGE = 128;

/** Keys of files that begin with `prefix`, in the folder whose own key is `under` and below. One page of each folder on the way is held. */
export async function* walkKeys(root: string, prefix: string, under: string): AsyncGenerator<string, void> {
  const folder = await opendir(join(root, under), { bufferSize: PAGE }).catch(orAbsent);
  if (folder === undefined) return;
  try {
    for (let entry = await folder.read(); entry !== null; entry = await folder.read()) {
      const key = under === "" ? entry.name : `${under}/${entry.name}`;
      // No key is hidden: what is below a hidden folder, as what is not finished, need not be looked at.
      if (entry.name.startsWith(".") || !key.startsWith(prefix)) continue;
      if (entry.isFile()) yield key;
      if (entry.isDirectory()) yield* walkKeys(root, prefix, key);
    }
  } finally {
    await folder.close();
  }
}
