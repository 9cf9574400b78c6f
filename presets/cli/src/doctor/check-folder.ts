import { statSync } from "node:fs";
import type { ReadSettings } from "../read-settings.ts";
import { shellWord } from "../terminal/shell-word.ts";
import { type Finding, wrong } from "./finding.ts";

/** Checks that a folder that the settings name exists. A folder that no setting names may be missing: it is empty then. */
export function checkFolder(
  { listing }: ReadSettings,
  path: string,
  place: { readonly dir: string } | object,
): readonly Finding[] {
  const setting = listing.find((each) => each.path === path);
  if (!("dir" in place) || setting === undefined || setting.source === "default") return [];
  return folderFindings(path, place.dir, `or correct ${path} (${setting.source})`);
}

/** The finding about a folder that does not exist. `otherwise` is another fix. */
export function folderFindings(about: string, dir: string, otherwise: string): readonly Finding[] {
  const found = statSync(dir, { throwIfNoEntry: false });
  if (found?.isDirectory()) return [];
  if (found) return [wrong(about, `${dir} is not a folder`, otherwise.replace(/^or /, ""))];
  return [wrong(about, `the folder ${dir} does not exist`, `mkdir -p ${shellWord(dir)}, ${otherwise}`)];
}
