import { statSync } from "node:fs";
import { listConfigKeys, nearestWord } from "@portico/core";
import { platformSchema } from "@portico/presets/settings/platform";
import { programOf } from "../program.ts";
import type { ReadSettings } from "../read-settings.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "configuration";
/** Permission bits of the group and of all other users. */
const OTHERS = 0o077;

/** Checks that only its owner can read the configuration file, if it contains a secret. */
export function checkConfigFile({ file, listing }: ReadSettings): readonly Finding[] {
  if (file === undefined) return [fine(ABOUT, "no configuration file; defaults and environment variables are fine")];
  const written = listing.filter(
    ({ value, source, reference }) => value === "***" && reference === undefined && source === `file ${file}`,
  );
  if (written.length > 0 && statSync(file).mode & OTHERS) {
    const keys = written.map(({ path }) => path).join(", ");
    return [
      wrong(
        ABOUT,
        `${file} contains secrets (${keys}) and other users can read it`,
        `chmod 600 ${file}, or write the secrets as {"env": "NAME"}`,
      ),
    ];
  }
  return [fine(ABOUT, `${file} is fine`)];
}

/** A misspelt variable has no effect and causes no error: only this check reports it. */
export function checkEnvironment(
  { listing, settings }: ReadSettings,
  env: Readonly<Record<string, string | undefined>>,
): readonly Finding[] {
  // The listing names the entries of a list, and not the variable of the whole list.
  const known = [...listing, ...listConfigKeys(programOf(settings)?.schema ?? platformSchema)].flatMap(
    (setting) => setting.env ?? [],
  );
  return Object.keys(env)
    .filter((name) => name.startsWith("PORTICO_") && !known.includes(name))
    .map((name) => {
      const nearest = nearestWord(name, known);
      return wrong(
        "environment",
        `${name} is set, but no setting reads it`,
        nearest ? `export ${nearest}="$${name}"; unset ${name}` : `unset ${name}`,
      );
    });
}
