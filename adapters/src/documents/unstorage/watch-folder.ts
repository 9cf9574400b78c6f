import { watch } from "node:fs";
import { isAbsolute, relative, sep } from "node:path";
import { ports } from "@portico/core";
import type { Driver } from "unstorage";
import fsDriver from "unstorage/drivers/fs";

const HIDDEN = /(?:^|\/)\./;

/**
 * Hints at files of a folder that may have changed, through unstorage's file driver, which creates a missing folder. Rejects if
 * the system cannot watch.
 */
export async function watchFolder(dir: string, depth: number, hint: (name?: string) => void): Promise<() => Promise<void>> {
  const ignored = (path: string): boolean => HIDDEN.test(nameOf(dir, path));
  const driver: Driver = fsDriver({
    base: dir,
    // No patterns: they match whole paths, and a data directory may be below a hidden one.
    ignore: [],
    watchOptions: { ignored, atomic: false, ...(depth < Infinity && { depth: depth - 1 }) },
  });
  await driver.watch?.((_event: string, path: string) => {
    const name = nameOf(dir, path);
    if (ports.isDocumentName(name)) hint(name);
  });
  const swaps = watchSwaps(dir, hint);
  return async () => {
    swaps.close();
    await driver.dispose?.();
  };
}

/**
 * Configuration that is mounted into a container is swapped by one link, `..data`, which all the other links use. The files
 * themselves report no change.
 */
function watchSwaps(dir: string, hint: () => void): { close(): void } {
  const watcher = watch(dir, (_event, name) => {
    if (name?.startsWith("..")) hint();
  });
  // The periodic checks find the changes that it misses.
  return watcher.on("error", () => {});
}

/** A watched path as a document's name; `""` for the folder itself. */
function nameOf(dir: string, path: string): string {
  return (isAbsolute(path) ? relative(dir, path) : path).split(sep).join("/");
}
