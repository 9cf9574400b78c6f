import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "../..");

/** Folders with tools that `npm ci` of the repository does not install. */
export type ToolsFolder = "playground/nitro" | "release" | "release/site" | "test/oracles" | "test/runtimes";

/**
 * Whether a folder's tools are installed. Tests that need them are skipped without them, and a line says so. If `CI` is set, missing tools
 * are an error.
 */
export function hasTools(folder: ToolsFolder, tests: string): boolean {
  if (existsSync(resolve(root, folder, "node_modules"))) return true;
  const how = `.ci/tools ${folder}`;
  if (process.env["CI"]) throw new Error(`${tests} need tools: run ${how}`);
  console.warn(`${tests} are skipped: they need tools, which ${how} installs`);
  return false;
}

/** What a package of a folder of tools exports. The caller says its type, because types are checked without these packages. */
export function loadTool<Exports>(folder: ToolsFolder, name: string): Promise<Exports> {
  const find = createRequire(resolve(root, folder, "package.json"));
  return import(pathToFileURL(find.resolve(name)).href) as Promise<Exports>;
}

/** `loadTool` of `test/oracles`. */
export function loadOracle<Exports>(name: string): Promise<Exports> {
  return loadTool("test/oracles", name);
}

/** The program of a reference server of the Model Context Protocol, such as `everything`. */
export function referenceMcpServer(name: string): string {
  return resolve(root, `test/oracles/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
}
