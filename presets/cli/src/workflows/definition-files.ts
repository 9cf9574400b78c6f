import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { DEFINITION_DEPTH } from "@portico/adapters/stores/workflow-folder";
import { CommandFailed, EXIT } from "../exit-codes.ts";

const DEFINITION_NAME = /\.(?:ya?ml|json)$/i;

/** The named files, and the definitions in the named folders, as a service finds them. Throws CommandFailed (66). */
export async function definitionFiles(named: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(named.map(async (path) => ((await isFolder(path)) ? definitionsIn(path) : [path])));
  return [...new Set(found.flat())];
}

async function isFolder(path: string): Promise<boolean> {
  // A missing file is reported when it is read.
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

async function definitionsIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch((cause: NodeJS.ErrnoException) => {
    throw new CommandFailed(`${folder} cannot be read (${cause.code})`, EXIT.noInput, cause);
  });
  const isRead = (name: string) => {
    const segments = name.split(/[/\\]/);
    return segments.length <= DEFINITION_DEPTH && DEFINITION_NAME.test(name) && !segments.some((each) => each.startsWith("."));
  };
  return names
    .filter(isRead)
    .sort()
    .map((name) => join(folder, name));
}
