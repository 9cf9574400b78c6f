import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { promisify } from "node:util";

/** The repository's root. */
export const root: string = resolve(import.meta.dirname, "../..");

/** Every file of the repository that is or would be tracked, by its path from the root with `/`. */
export async function repositoryFiles(): Promise<string[]> {
  const { stdout } = await promisify(execFile)("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.split("\0").filter((file) => file !== "" && existsSync(resolve(root, file)));
}

export function readText(file: string): Promise<string> {
  return readFile(resolve(root, file), "utf8");
}

/** One import of one source file. */
export interface Import {
  readonly file: string;
  readonly target: string;
  readonly isTypeOnly: boolean;
}

/** Static and dynamic imports and re-exports of a source text, whatever lines they are broken into. Comments do not count. */
export function importsOf(file: string, text: string): Import[] {
  const code = text.replaceAll(/^\s*(?:\/\/|\*|\/\*).*$/gm, "");
  const statements = code.matchAll(/^[ \t]*(?:import|export)\s+(type\s)?(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm);
  const dynamic = code.matchAll(/\bimport\(\s*"([^"]+)"\s*\)/g);
  return [
    ...[...statements].map(([, type, target = ""]) => ({ file, target, isTypeOnly: type !== undefined })),
    ...[...dynamic].map(([, target = ""]) => ({ file, target, isTypeOnly: false })),
  ];
}

/** The package that an import names: `@scope/name` or `name`; undefined for a path or a part of Node. */
export function packageOf(target: string): string | undefined {
  if (target.startsWith(".") || target.startsWith("#") || target.startsWith("node:")) return undefined;
  return target
    .split("/")
    .slice(0, target.startsWith("@") ? 2 : 1)
    .join("/");
}
