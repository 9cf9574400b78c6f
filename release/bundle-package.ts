import { existsSync } from "node:fs";
import { glob } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { rolldown } from "rolldown";
import { CHUNKS, type Manifest } from "./manifest.ts";

/**
 * Compile the sources of a package to JavaScript below `into`. Each module in `exports` and `imports` keeps the path of its
 * source; shared code goes into chunks. Other packages stay imports. Modules find files of their package by `imports`, and not by
 * their own location.
 */
export async function bundlePackage(folder: string, manifest: Manifest, declarations: string, into: string): Promise<void> {
  const targets = [...Object.values(manifest.exports), ...Object.values(manifest.imports ?? {})];
  const patterns = targets.filter((target) => target.endsWith(".ts")).map(toPattern);
  const sources = await Array.fromAsync(glob(patterns, { cwd: folder }));
  // Sources that the compiler did not get belong only to the repository.
  const entries = sources.filter((file) => existsSync(join(declarations, file.replace(/\.ts$/, ".d.ts"))));
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((file) => [nameOf(file), join(folder, file)])),
    cwd: folder,
    platform: "node",
    external: (id) => !id.startsWith(".") && !isAbsolute(id),
    transform: { target: "node22.19" },
  });
  await bundle.write({
    dir: into,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: `${CHUNKS}/[name]-[hash].js`,
    sourcemap: true,
    // Source maps contain their sources. The path is only the name that debuggers show.
    sourcemapPathTransform: (source, map) =>
      relative(dirname(map), join(dirname(into), relative(folder, resolve(dirname(map), source)))),
  });
  await bundle.close();
}

/** As in Node.js, `*` may also match a folder: of adapters, the first is a port and the second a technology. */
function toPattern(target: string): string {
  return target.replace("./", "").replace("*", "{*,*/*}");
}

/** Path of a source below `dist`, without its extension. */
function nameOf(file: string): string {
  return file.replace(/^src\//, "").replace(/\.ts$/, "");
}
