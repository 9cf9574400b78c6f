import { cp, glob, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Manifest, publishedManifest, type Repository } from "./manifest.ts";
import { runProgram } from "./run-program.ts";

const root = resolve(import.meta.dirname, "..");

/** Where the packages of a release are, each in a folder of its room's name: as `publishConfig.directory` says in its package.json. */
export const PACKAGES: string = join(root, "dist/packages");

/** Rooms whose packages are published, each after those that it needs. */
const PUBLISHED = ["core", "adapters", "plugins", "client", "presets", "test"];

export interface BuiltPackage {
  readonly name: string;
  /** What is published, as it is. */
  readonly folder: string;
}

/**
 * Compile the sources, and put every published package into a folder of its own below `into`, which is emptied. The repository runs from
 * its sources, and Node.js strips no types below `node_modules`: what is published is therefore a copy, and not the workspace.
 */
export async function buildPackages(into: string): Promise<BuiltPackage[]> {
  await rm(into, { recursive: true, force: true });
  const compiled = join(into, "compiled");
  await compile(compiled);
  const built = await Promise.all(PUBLISHED.map((room) => stage(room, join(compiled, room), join(into, room))));
  await rm(compiled, { recursive: true });
  return built;
}

async function compile(outDir: string): Promise<void> {
  const compiler = join(dirname(fileURLToPath(import.meta.resolve("typescript/package.json"))), "bin/tsc");
  await runProgram(process.execPath, [compiler, "-p", join(import.meta.dirname, "tsconfig.json"), "--outDir", outDir], root);
}

async function stage(room: string, compiled: string, folder: string): Promise<BuiltPackage> {
  const source = join(root, room);
  const manifest = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as Manifest;
  for await (const file of glob("**/*.{js,d.ts,js.map}", { cwd: compiled })) {
    const target = join(folder, "dist", file.replace(/^src\//, ""));
    await mkdir(dirname(target), { recursive: true });
    if (file.endsWith(".map")) await writeFile(target, await relocatedMap(join(compiled, file), target, join(folder, file)));
    else await cp(join(compiled, file), target);
  }
  const asTheyAre = ["README.md", ...manifest.files.filter((entry) => entry !== "dist")];
  for (const entry of asTheyAre) await cp(join(source, entry), join(folder, entry), { recursive: true });
  await cp(join(root, "LICENSE"), join(folder, "LICENSE"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify(publishedManifest(manifest, repositoryOf(room)), null, 2)}\n`);
  return { name: manifest.name, folder };
}

/** A source map holds its source; only the name under which debuggers show it is another than where it was compiled. */
async function relocatedMap(compiled: string, target: string, shown: string): Promise<string> {
  const map = JSON.parse(await readFile(compiled, "utf8")) as object;
  return JSON.stringify({ ...map, sources: [relative(dirname(target), shown.replace(/\.js\.map$/, ".ts"))] });
}

/** Where the build service says that the sources are at home: a package's provenance is checked against it. */
function repositoryOf(directory: string): Repository | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  return server && name ? { url: `git+${server}/${name}.git`, directory } : undefined;
}
