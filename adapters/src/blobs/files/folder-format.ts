import { randomBytes } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { findStoreTooNew, ports, stepsFrom } from "@portico/core";
import { orAbsent, syncFolders } from "./folders.ts";

/** Begins with a dot, which no key does. */
export const FORMAT_FILE = ".format";
/** Steps from one format of the folder to the next. A step that a kill interrupted runs again, so it must be repeatable. */
const STEPS: readonly ((root: string) => Promise<void>)[] = [];
/** The newest format of a folder of blobs. */
export const FOLDER_FORMAT: number = STEPS.length + 1;

/**
 * Convert a folder of blobs to the newest format, and mark it as such. A folder without a mark has format 1: it is empty, or
 * older than marks. Throws BlobsUnavailable for a folder of a newer version.
 */
export async function settleFormat(root: string): Promise<void> {
  const path = join(root, FORMAT_FILE);
  const found = await readFile(path, "utf8").catch(orAbsent);
  const newest = STEPS.length + 1;
  for (const step of stepsOf(found)) await step(root);
  if (found === undefined || Number(found) !== newest) await writeMark(root, path, newest);
}

function stepsOf(found: string | undefined): typeof STEPS {
  try {
    return stepsFrom("The folder of blobs", found === undefined ? 1 : Number(found), STEPS);
  } catch (cause) {
    throw new ports.BlobsUnavailable(findStoreTooNew(cause)?.message ?? "The folder of blobs does not tell its format", {
      cause,
    });
  }
}

async function writeMark(root: string, path: string, format: number): Promise<void> {
  // A name of this opening: several processes may open the folder at the same time, and write the same content. Process IDs of
  // several machines may be equal.
  const fresh = `${path}.${randomBytes(8).toString("hex")}`;
  const file = await open(fresh, "w", 0o600);
  try {
    await file.writeFile(`${format}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(fresh, path);
  await syncFolders(root, path);
}
