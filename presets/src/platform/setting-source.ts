import type { ConfigSetting } from "@portico/core";

/** The kinds of sources of settings. A listing names the file, the variable or the flag, too. */
const KINDS = ["default", "file", "environment", "flag", "options"] as const;

export type SettingSource = (typeof KINDS)[number];

/** What set a setting, or the first one below it. Undefined where the listing does not know it. Paths of files are left out. */
export function settingSource(listing: readonly ConfigSetting[], setting: string): SettingSource | undefined {
  const words = listing.find(({ path }) => path === setting || path.startsWith(`${setting}.`))?.source;
  return KINDS.find((kind) => words === kind || words?.startsWith(`${kind} `));
}
