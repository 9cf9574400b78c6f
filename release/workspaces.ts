import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");

/** A package of this repository. */
export interface Workspace {
  /** Its folder, from the root of the repository. A folder may lie in that of another workspace. */
  readonly folder: string;
  readonly name: string;
  readonly isPublished: boolean;
}

/** All workspaces of the root's package.json. */
export const WORKSPACES: readonly Workspace[] = readManifest<{ workspaces: string[] }>("").workspaces.map((folder) => {
  const { name, publishConfig } = readManifest<{ name: string; publishConfig?: object }>(folder);
  return { folder, name, isPublished: publishConfig !== undefined };
});

/** The folders of the published packages. */
export const PUBLISHED_ROOMS: readonly string[] = WORKSPACES.filter(({ isPublished }) => isPublished).map(({ folder }) => folder);

/** The folder of the workspace that a file is in: the innermost one. Undefined for a file outside of them. */
export function workspaceOf(file: string): string | undefined {
  const around = WORKSPACES.filter(({ folder }) => file.startsWith(`${folder}/`));
  return around.sort((one, other) => other.folder.length - one.folder.length)[0]?.folder;
}

function readManifest<T>(folder: string): T {
  return JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as T;
}
