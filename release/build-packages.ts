import { cp, glob, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { bundlePackage } from "./bundle-package.ts";
import { type Manifest, publishedManifest, type Repository } from "./manifest.ts";
import { runProgram } from "./run-program.ts";
import { PUBLISHED_ROOMS, workspaceOf } from "./workspaces.ts";

const root = resolve(import.meta.dirname, "..");

/**
 * The packages of a release, each in a folder that `folderName` names: `publishConfig.directory` in its package.json is that folder.
 */
export const PACKAGES: string = join(root, "dist/packages");

/** Packages to build, and the configuration of the compiler for them. */
export interface PackageSet {
  readonly rooms: readonly string[];
  readonly project: string;
}

const PUBLISHED: PackageSet = { rooms: PUBLISHED_ROOMS, project: "tsconfig.json" };

/** The packages that a service runs. Building them needs no dependency of tests. */
export const SERVICE: PackageSet = {
  rooms: [
    "core",
    "adapters",
    "adapters/clouds",
    "adapters/cluster",
    "adapters/workflow-nodes",
    "plugins",
    "plugins/mcp",
    "plugins/operator",
    "console",
    "presets",
    "presets/cli",
  ],
  project: "tsconfig.service.json",
};

/** The folder of a room's package below `PACKAGES`: `adapters-workflow-nodes` for `adapters/workflow-nodes`. */
export function folderName(room: string): string {
  return room.replaceAll("/", "-");
}

export interface BuiltPackage {
  readonly name: string;
  /** Holds exactly the published files. */
  readonly folder: string;
}

/**
 * Put every package of the set (default: the published ones) into its own folder below `into`, which is emptied first: its sources as JavaScript, their
 * declarations, and further files. The repository runs from its TypeScript sources, but Node.js strips no types below
 * `node_modules`. Therefore a compiled copy is published, and not the workspace.
 */
export async function buildPackages(into: string, { rooms, project }: PackageSet = PUBLISHED): Promise<BuiltPackage[]> {
  await rm(into, { recursive: true, force: true });
  const declarations = join(into, "declarations");
  await declare(declarations, project);
  const built = await Promise.all(rooms.map((room) => stage(room, join(declarations, room), join(into, folderName(room)))));
  await rm(declarations, { recursive: true });
  return built;
}

async function declare(outDir: string, project: string): Promise<void> {
  // The repository's own compiler: a tool that is installed in this folder brings an older one.
  const compiler = join(dirname(createRequire(join(root, "package.json")).resolve("typescript/package.json")), "bin/tsc");
  await runProgram(process.execPath, [compiler, "-p", join(import.meta.dirname, project), "--outDir", outDir], root);
}

async function stage(room: string, declarations: string, folder: string): Promise<BuiltPackage> {
  const source = join(root, room);
  const manifest = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as Manifest;
  await bundlePackage(source, manifest, declarations, join(folder, "dist"));
  for await (const file of glob("**/*.d.ts", { cwd: declarations }))
    if (workspaceOf(join(room, file)) === room)
      await cp(join(declarations, file), join(folder, "dist", file.replace(/^src\//, "")));
  const asTheyAre = ["README.md", ...manifest.files.filter((entry) => entry !== "dist")];
  for (const entry of asTheyAre) await cp(join(source, entry), join(folder, entry), { recursive: true });
  await cp(join(root, "LICENSE"), join(folder, "LICENSE"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify(publishedManifest(manifest, repositoryOf(room)), null, 2)}\n`);
  return { name: manifest.name, folder };
}

/** The repository of the sources, as the build service names it. The provenance of a package is checked against it. */
function repositoryOf(directory: string): Repository | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
  return server && name ? { url: `git+${server}/${name}.git`, directory } : undefined;
}
