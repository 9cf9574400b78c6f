import { watch } from "node:fs";
import { isAbsolute, relative, sep } from "node:path";
import { ports } from "@portico/core";
import type { Driver } from "unstorage";
import fsDriver from "unstorage/drivers/fs";

const HIDDEN = /(?:^|\/)\./;

/**
 * Hints at files of a folder that may have changed, through unstorage's driver for files, which makes the folder if it is not there.
 * Rejects where the system cannot watch.
 */
export async function watchFolder(dir: string, depth: number, hint: (name?: string) => void): Promise<() => Promise<void>> {
  const ignored = (path: string): boolean => HIDDEN.test(nameOf(dir, path));
  const driver: Driver = fsDriver({
    base: dir,
    // None of its own: they are matched with whole paths, and a data directory may well lie below a hidden one.
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
 * Configuration that is mounted into a container is swapped by one link, `..data`, that all the others lead through: none of the files
 * tells of it.
 */
function watchSwaps(dir: string, hint: () => void): { close(): void } {
  const watcher = watch(dir, (_event, name) => {
    if (name?.startsWith("..")) hint();
  });
  // What it misses is found by looking again.
  return watcher.on("error", () => {});
}

/** A watched path as a document's name; `""` for the folder itself. */
function nameOf(dir: string, path: string): string {
  return (isAbsolute(path) ? relative(dir, path) : path).split(sep).join("/");
}
