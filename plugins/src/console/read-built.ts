import { readFile } from "node:fs/promises";

/** Where `npm run console` builds it to: a folder of this package, whose modules may be moved together when it is built. */
export const BUILT: URL = new URL("console/", import.meta.resolve("#package.json"));

/** Read at every request: a few hundred kilobytes that the system keeps, and a build shows as soon as it is done. */
export async function readBuilt(file: URL): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
