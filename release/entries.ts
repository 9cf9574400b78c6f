import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CHUNKS } from "./manifest.ts";

/** Only a pattern makes workers entries: they run in their own thread and are never imported. */
const WORKER = /-worker$/;

/** All subpaths that a built package exports, as `./a/b` or `.`. Patterns are resolved by the existing files. */
export async function entriesOf(folder: string): Promise<string[]> {
  const { exports } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
    exports: Readonly<Record<string, string | null>>;
  };
  const entries = new Set<string>();
  for (const [subpath, target] of Object.entries(exports)) {
    if (target === null) continue;
    if (!target.includes("*")) entries.add(subpath);
    else for await (const word of wordsOf(folder, target)) entries.add(subpath.replace("*", word));
  }
  return [...entries].filter((entry) => !WORKER.test(entry)).sort();
}

/** Values for the `*` of a target. As in Node.js, they may contain slashes. */
async function* wordsOf(folder: string, target: string): AsyncGenerator<string> {
  const [before = "", after = ""] = target.replace("./", "").split("*");
  for await (const file of glob(`${before}**/*.js`, { cwd: folder })) {
    if (file.endsWith(after) && !file.startsWith(`dist/${CHUNKS}/`)) yield file.slice(before.length, file.length - after.length);
  }
}
