import { statSync } from "node:fs";
import type { ReadSettings } from "../read-settings.ts";
import { shellWord } from "../terminal.ts";

/** The result of one check. */
export interface Finding {
  /** `configuration`, `data directory`, `provider main`, `port of proxy`, … */
  readonly about: string;
  readonly isWrong: boolean;
  /** A warning: `doctor` does not fail because of it. */
  readonly isWarning?: true;
  /** Contains no secret. */
  readonly message: string;
  /** How to fix it. */
  readonly fix?: string;
  /** The first names that the message counts. May contain control characters of file names and ids. */
  readonly items?: readonly string[];
}

/** The same finding, with the names that its message counts. */
export function withItems(finding: Finding, items: readonly string[]): Finding {
  return { ...finding, items };
}

export function fine(about: string, message: string): Finding {
  return { about, isWrong: false, message };
}

export function doubtful(about: string, message: string): Finding {
  return { about, isWrong: false, isWarning: true, message };
}

export function wrong(about: string, message: string, fix: string): Finding {
  return { about, isWrong: true, message, fix };
}

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
