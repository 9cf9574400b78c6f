import { readFileSync } from "node:fs";

/** Version of this package, from its package.json. */
export const VERSION: string = (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { version: string }).version;

/** A file or a folder (with a trailing `/`) of this package, by its path in the package. Works also if a build merges modules. */
export function packageFile(path: string): URL {
  return new URL(path, import.meta.resolve("#package.json"));
}
