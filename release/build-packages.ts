import { cp, glob, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundlePackage } from "./bundle-package.ts";
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
 * Put every published package into a folder of its own below `into`, which is emptied: its sources as JavaScript, their declarations, and what goes
 * along. The repository runs from its sources, and Node.js strips no types below `node_modules`: what is published is therefore a copy, and
 * not the workspace.
 */
export async function buildPackages(into: string): Promise<BuiltPackage[]> {
  await rm(into, { recursive: true, force: true });
  const declarations = join(into, "declarations");
  await declare(declarations);
  const built = await Promise.all(PUBLISHED.map((room) => stage(room, join(declarations, room), join(into, room))));
  await rm(declarations, { recursive: true });
  return built;
}

async function declare(outDir: string): Promise<void> {
  const compiler = join(dirname(fileURLToPath(import.meta.resolve("typescript/package.json"))), "bin/tsc");
  await runProgram(process.execPath, [compiler, "-p", join(import.meta.dirname, "tsconfig.json"), "--outDir", outDir], root);
}

async function stage(room: string, declarations: string, folder: string): Promise<BuiltPackage> {
  const source = join(root, room);
  const manifest = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as Manifest;
  await bundlePackage(source, manifest, declarations, join(folder, "dist"));
  for await (const file of glob("**/*.d.ts", { cwd: declarations }))
    await cp(join(declarations, file), join(folder, "dist", file.replace(/^src\//, "")));
  const asTheyAre = ["README.md", ...manifest.files.filter((entry) => entry !== "dist")];
  for (const entry of asTheyAre) await cp(join(source, entry), join(folder, entry), { recursive: true });
  await cp(join(root, "LICENSE"), join(folder, "LICENSE"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify(publishedManifest(manifest, repositoryOf(room)), null, 2)}\n`);
  return { name: manifest.name, folder };
}

/** Where the build service says that the sources are at home: a package's provenance is checked against it. */
function repositoryOf(directory: string): Repository | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  return server && name ? { url: `git+${server}/${name}.git`, directory } : undefined;
}
