import { clusterProblems } from "@portico/presets/cluster/problems";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";

/** The settings for a command that works on the stores of a cluster. Throws CommandFailed (78) if they are those of no cluster, or not complete. */
export async function readClusterSettings(flags: SettingsFlags): Promise<PlatformSettings> {
  const { settings } = await readSettings(flags);
  if (!namesCluster(settings)) {
    throw new CommandFailed("The configuration names no cluster: set cluster.postgres.url (PORTICO_POSTGRES_URL)", EXIT.config);
  }
  const problems = clusterProblems(settings);
  if (problems.length > 0) throw new CommandFailed(problems.join("\n"), EXIT.config);
  return settings;
}
