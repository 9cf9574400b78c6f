import { existsSync } from "node:fs";
import { glob } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { rolldown } from "rolldown";
import type { Manifest } from "./manifest.ts";

/** Below a package's `dist`: what several of its modules share. */
export const CHUNKS = "chunks";

/**
 * Turn the sources of a package into JavaScript below `into`: each module that `exports` and `imports` name at the path of its source, and what they
 * share in chunks. What is of another package stays an import. Modules find files of their package by `imports` and not by where they stand.
 */
export async function bundlePackage(folder: string, manifest: Manifest, declarations: string, into: string): Promise<void> {
  const targets = [...Object.values(manifest.exports), ...Object.values(manifest.imports ?? {})];
  const patterns = targets.filter((target) => target.endsWith(".ts")).map(toPattern);
  const sources = await Array.fromAsync(glob(patterns, { cwd: folder }));
  // What the compiler was not given is of the repository only.
  const entries = sources.filter((file) => existsSync(join(declarations, file.replace(/\.ts$/, ".d.ts"))));
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((file) => [nameOf(file), join(folder, file)])),
    cwd: folder,
    platform: "node",
    external: (id) => !id.startsWith(".") && !isAbsolute(id),
    transform: { target: "node22.18" },
  });
  await bundle.write({
    dir: into,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: `${CHUNKS}/[name]-[hash].js`,
    sourcemap: true,
    // Maps hold their sources: what is left of a path is the name under which debuggers show one.
    sourcemapPathTransform: (source, map) =>
      relative(dirname(map), join(dirname(into), relative(folder, resolve(dirname(map), source)))),
  });
  await bundle.close();
}

/** `*` stands for a folder, too, as Node.js has it: of adapters, the first is a port and the second a technology. */
function toPattern(target: string): string {
  return target.replace("./", "").replace("*", "{*,*/*}");
}

/** Where a source stands below `dist`, without its ending. */
function nameOf(file: string): string {
  return file.replace(/^src\//, "").replace(/\.ts$/, "");
}
