import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { ports } from "@portico/core";
import { decodeText } from "./decode-text.ts";
import { isAbsent } from "./real-path.ts";

// Does not wait for the other end of a pipe, and does not follow a link that was swapped in after its path was resolved.
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/**
 * The text of a file. Undefined for a missing file and for a folder. Throws DocumentsUnavailable for a file that is not text or
 * is too large.
 */
export async function readTextFile(path: string): Promise<string | undefined> {
  const file = await open(path, READ).catch(orAbsent);
  if (file === undefined) return undefined;
  try {
    return isReadable(await file.stat()) ? decodeText(await file.readFile()) : undefined;
  } finally {
    await file.close();
  }
}

/** The same, synchronously. */
export function readTextFileSync(path: string): string | undefined {
  const file = openOrAbsent(path);
  if (file === undefined) return undefined;
  try {
    return isReadable(fstatSync(file)) ? decodeText(readFileSync(file)) : undefined;
  } finally {
    closeSync(file);
  }
}

function isReadable(stat: { isFile(): boolean; isDirectory(): boolean; size: number }): boolean {
  if (stat.isDirectory()) return false;
  if (!stat.isFile()) throw new ports.DocumentsUnavailable("The path of a document is not a file");
  if (stat.size > ports.DOCUMENT_BYTES) throw new ports.DocumentsUnavailable("A document is over 16 MiB");
  return true;
}

function openOrAbsent(path: string): number | undefined {
  try {
    return openSync(path, READ);
  } catch (error) {
    return orAbsent(error);
  }
}

function orAbsent(error: unknown): undefined {
  if (!isAbsent(error)) throw error;
}
