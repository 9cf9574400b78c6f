import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../package-file.ts";

/**
 * Each folder but `instance` is a working package with the name `sample-name`. The folder `every` has the files of all packages. `instance` is the
 * folder of a service.
 */
const TEMPLATES = fileURLToPath(packageFile("templates/"));

export interface TemplateFile {
  /** Relative to the folder that is made. */
  readonly path: string;
  readonly text: string;
}

/** The files of a template. */
export async function templateFiles(template: string): Promise<readonly TemplateFile[]> {
  const folder = join(TEMPLATES, template);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    paths.map(async (path) => ({
      // npm does not publish files of this name unchanged.
      path: path.slice(folder.length + 1).replace(/^gitignore$/, ".gitignore"),
      text: await readFile(path, "utf8"),
    })),
  );
}

/** Ports with a template of an adapter. */
export async function portsWithTemplates(): Promise<readonly string[]> {
  return (await readdir(TEMPLATES)).flatMap((name) => /^adapter-(.+)$/.exec(name)?.[1] ?? []).toSorted();
}
