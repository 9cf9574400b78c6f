import { dataDirectory } from "../../platform/data-directory.ts";
import { CommandFailed } from "../exit-codes.ts";
import { type ReadSettings, readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { checkConfigFile, checkEnvironment } from "./check-config.ts";
import { checkDataDirectory } from "./check-data-directory.ts";
import { checkPorts } from "./check-ports.ts";
import { checkProviders } from "./check-providers.ts";
import { checkWorkflows } from "./check-workflows.ts";
import { type Finding, wrong } from "./finding.ts";

/** Every check, in the order in which a person would mend things. A configuration that cannot be read leaves nothing else to check. */
export async function diagnose(flags: SettingsFlags): Promise<readonly Finding[]> {
  let read: ReadSettings;
  try {
    read = await readSettings(flags);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const fix = "correct the key that the line begins with; docs/configuration.md lists all of them";
    return error.message.split("\n").map((line) => wrong("configuration", line, fix));
  }
  const { settings } = read;
  const directory = dataDirectory(settings.dataDir);
  return [
    ...checkConfigFile(read),
    ...checkEnvironment(read, process.env),
    ...checkDataDirectory(directory),
    ...(await checkProviders(settings)),
    ...(await checkWorkflows(settings)),
    ...(await checkPorts(settings, directory)),
  ];
}
