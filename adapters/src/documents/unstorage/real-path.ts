import { realpath } from "node:fs/promises";
import { sep } from "node:path";
import { ports } from "@portico/core";

/** Errors that mean that there is nothing of that name. */
const ABSENT: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);

export function isAbsent(error: unknown): boolean {
  return ABSENT.has((error as NodeJS.ErrnoException).code);
}

/** A path with all its links followed; undefined where there is nothing. */
export async function realPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

export function isWithin(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** The path itself. Throws DocumentsUnavailable for one outside the folder: links may lead anywhere in it and nowhere out of it. */
export function assertWithin(root: string, path: string): string {
  if (path !== root && !isWithin(root, path)) throw new ports.DocumentsUnavailable("A link leads out of the documents' folder");
  return path;
}
