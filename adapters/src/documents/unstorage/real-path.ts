import { realpath } from "node:fs/promises";
import { sep } from "node:path";
import { ports } from "@portico/core";

/** Errors for a path that does not exist. */
const ABSENT: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);

export function isAbsent(error: unknown): boolean {
  return ABSENT.has((error as NodeJS.ErrnoException).code);
}

/** A path with all links resolved. Undefined if it does not exist. */
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

/**
 * Returns the path. Throws DocumentsUnavailable if it is outside of the folder: links may lead anywhere inside, but not outside.
 */
export function assertWithin(root: string, path: string): string {
  if (path !== root && !isWithin(root, path)) throw new ports.DocumentsUnavailable("A link leads out of the documents' folder");
  return path;
}
