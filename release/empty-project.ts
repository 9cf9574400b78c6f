import { cp, lstat, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProgram } from "./run-program.ts";

/** A folder outside of the repository with only the requested packages installed. */
export interface EmptyProject extends AsyncDisposable {
  readonly folder: string;
  /** Names with versions, or tarballs. */
  install(packages: readonly string[]): Promise<void>;
  run(file: string, ...args: string[]): Promise<string>;
  /** Number of installed packages, and total bytes of their files. */
  measure(): Promise<{ readonly packages: number; readonly bytes: number }>;
}

/** Make a project of the files in `folder`. Disposing removes it. */
export async function createProject(from: string): Promise<EmptyProject> {
  const folder = await mkdtemp(join(tmpdir(), "portico-trial-"));
  await cp(from, folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const run = (file: string, ...args: string[]) => runProgram(file, args, folder);
  return {
    folder,
    async install(packages) {
      await run("npm", "install", "--no-audit", "--no-fund", ...packages);
    },
    run,
    async measure() {
      const installed = JSON.parse(await readFile(join(folder, "node_modules/.package-lock.json"), "utf8")) as {
        packages: object;
      };
      return { packages: Object.keys(installed.packages).length, bytes: await bytesOf(join(folder, "node_modules")) };
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function bytesOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(async ({ parentPath, name }) => (await lstat(join(parentPath, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
