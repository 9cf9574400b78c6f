import { cluster } from "../cluster/preset.ts";
import { clusterProblems } from "../platform/cluster-problems.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import { refuseUnfinishedMove } from "./cluster/refuse-unfinished-move.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import type { StartablePreset } from "./startable-preset.ts";

/** How a process of a cluster starts. */
export const startCluster = {
  build: cluster,
  hasNoData: true,
  async prepare(settings) {
    const problems = clusterProblems(settings);
    if (problems.length > 0) throw new CommandFailed(problems.join("\n"), EXIT.config);
    await refuseUnfinishedMove(settings);
    return withListener(settings);
  },
  serves: ({ cluster: { surfaces } }) => [...surfaces, "probes"],
} satisfies Partial<StartablePreset>;

/** A process without surfaces has at least the listener of its probes. */
function withListener(settings: PlatformSettings): PlatformSettings {
  const { cluster, probes } = settings;
  if (cluster.surfaces.length > 0 || probes?.listen) return settings;
  return { ...settings, probes: { listen: { host: "127.0.0.1", port: 0 } } };
}
