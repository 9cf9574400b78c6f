import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { hasTools } from "./oracle.ts";

/** The runtimes besides Node.js on which Portico is tested. */
export type RuntimeName = "deno" | "bun";

/** How to run a script with another runtime. */
export interface Runtime {
  /** The program and its arguments before the script. */
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
}

const KNOWN: Readonly<Record<RuntimeName, { readonly programs: readonly string[]; readonly before: readonly string[] }>> = {
  deno: { programs: ["deno", "deno.exe"], before: ["run", "--allow-all", "--no-lock"] },
  bun: { programs: ["bin/bun", "bin/bun.exe"], before: ["--no-install"] },
};

/**
 * The runtime of the npm package with this name in `test/runtimes`. Undefined without a binary for this machine: tests are then skipped. If `CI` is set, a
 * missing one is an error.
 */
export function findRuntime(name: RuntimeName): Runtime | undefined {
  if (!hasTools("test/runtimes", `Tests on ${name}`)) return undefined;
  const { programs, before } = KNOWN[name];
  const program = platformFolders(name)
    .flatMap((folder) => programs.map((file) => join(folder, file)))
    .find((file) => existsSync(file));
  if (program) return { command: [program, ...before], env: { DENO_NO_UPDATE_CHECK: "1" } };
  if (process.env["CI"]) throw new Error(`The npm package "${name}" has no binary for this machine`);
  console.warn(`Tests on ${name} are skipped: the npm package "${name}" has no binary for this machine`);
  return undefined;
}

/** The runtime on which all services of a test run are started, if `PORTICO_TEST_RUNTIME` names one. */
export function chosenRuntime(): Runtime | undefined {
  const name = process.env["PORTICO_TEST_RUNTIME"];
  if (name === undefined) return undefined;
  const runtime = name === "deno" || name === "bun" ? findRuntime(name) : undefined;
  if (!runtime) throw new Error(`PORTICO_TEST_RUNTIME is "${name}": no such runtime is here`);
  return runtime;
}

/** Install scripts are switched off, so the binary is still in the package for this platform. npm installs no other one. */
function platformFolders(name: RuntimeName): readonly string[] {
  const require = createRequire(join(import.meta.dirname, "../runtimes/package.json"));
  const find = (path: string, from = require): string[] => {
    try {
      return [from.resolve(path)];
    } catch {
      return [];
    }
  };
  const [main] = find(`${name}/package.json`);
  if (main === undefined) return [];
  const { optionalDependencies } = require(main) as { readonly optionalDependencies: Readonly<Record<string, string>> };
  const from = createRequire(main);
  return Object.keys(optionalDependencies).flatMap((each) => find(`${each}/package.json`, from).map(dirname));
}
