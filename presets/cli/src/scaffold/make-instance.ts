import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CONFIG_FILES } from "../config-file.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { templateFiles } from "./make-package.ts";

interface MadeInstance {
  /** An absolute path. */
  readonly folder: string;
  /** Paths of the created files, relative to the folder. */
  readonly files: readonly string[];
  /** Paths of files that existed, and were left as they are. */
  readonly kept: readonly string[];
}

/** The template's configuration file. The service reads only one, so any other name counts, too. */
const CONFIG = "portico.config.yaml";

/**
 * Create the files of a service in a folder: a configuration file whose keys are comments, an agent and a workflow. Existing files are left as
 * they are. Throws CommandFailed (73) if the folder cannot be written.
 */
export async function makeInstance(dir: string, cwd: string): Promise<MadeInstance> {
  const folder = resolve(cwd, dir);
  const files: string[] = [];
  const kept: string[] = [];
  try {
    await mkdir(folder, { recursive: true });
    const config = (await readdir(folder)).find((name) => CONFIG_FILES.includes(name));
    for (const { path, text } of await templateFiles("instance")) {
      if (path === CONFIG && config !== undefined) kept.push(config);
      else ((await createFile(join(folder, path), text)) ? files : kept).push(path);
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandFailed(`The folder ${dir} cannot be written (${code ?? "unknown reason"})`, EXIT.cannotCreate, cause);
  }
  return { folder, files: files.toSorted(), kept: kept.toSorted() };
}

/** False if the file exists. */
async function createFile(path: string, text: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true });
  try {
    await writeFile(path, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
