import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { ports } from "@portico/core";
import { decodeText } from "./decode-text.ts";
import { isAbsent } from "./real-path.ts";

// Not waiting for the other end of a pipe that somebody put there, and no last link that was swapped in after its path was followed.
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** The text of a file; undefined where there is none, or a folder. Throws DocumentsUnavailable for what is no text of fitting size. */
export async function readTextFile(path: string): Promise<string | undefined> {
  const file = await open(path, READ).catch(orAbsent);
  if (file === undefined) return undefined;
  try {
    return isReadable(await file.stat()) ? decodeText(await file.readFile()) : undefined;
  } finally {
    await file.close();
  }
}

/** The same without a turn of the event loop. */
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
  if (!stat.isFile()) throw new ports.DocumentsUnavailable("A document's name is taken by what is no file");
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
