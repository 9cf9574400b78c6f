import { readFile } from "node:fs/promises";

/** The folder of this package into which `npm run console` builds. Found from package.json, because a build of the package may move modules. */
export const BUILT: URL = new URL("console/", import.meta.resolve("#package.json"));

/** Reads the file at every request, so that a new build is served immediately. The system caches these few hundred kilobytes. */
export async function readBuilt(file: URL): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
