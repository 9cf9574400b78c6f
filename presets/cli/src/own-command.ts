import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION } from "@portico/presets/platform/version";
import { shellWord } from "./terminal.ts";

/**
 * The words with which a shell in `cwd` calls this command line. `npx portico` only if npx finds an installed copy there: it would otherwise
 * download and run whatever package the registry has under that name.
 */
export function ownCommand(cwd: string = process.cwd()): string {
  return isInstalled(".bin/portico", cwd) ? "npx portico" : `node ${shellWord(fileURLToPath(packageFile("portico.mjs")))}`;
}

/**
 * The `npm install` that a package in `folder` needs. Undefined if all its dependencies are installed, as in a checkout. Before the packages are
 * published, they are installed from packed files.
 */
export function installCommand(folder: string, dependencies: readonly string[]): string | undefined {
  if (dependencies.every((name) => isInstalled(name, folder))) return undefined;
  return VERSION === UNPUBLISHED ? `npm install ${packedFiles()}` : "npm install";
}

/** A file or a folder (with a trailing `/`) of this package, by its path in the package. Works also if a build merges modules. */
export function packageFile(path: string): URL {
  return new URL(path, import.meta.resolve("#package.json"));
}

/** The version of packages that no registry has. */
const UNPUBLISHED = "0.0.0";

/** In a checkout, the files that `npm run pack` creates. */
function packedFiles(): string {
  const own = fileURLToPath(packageFile("."));
  if (/[\\/]node_modules[\\/]/.test(own)) return "FOLDER_OF_PACKED_FILES/*.tgz";
  return `${shellWord(resolve(own, "../../dist/packages"))}/*.tgz`;
}

/** Whether a folder or one above it has this in its `node_modules`. */
function isInstalled(name: string, folder: string): boolean {
  for (let at = resolve(folder); ; at = dirname(at)) {
    if (existsSync(join(at, "node_modules", name))) return true;
    if (at === dirname(at)) return false;
  }
}
