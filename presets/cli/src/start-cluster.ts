import { inspectPostgres, inspectRedis, ServerAway } from "@portico/cluster/stores/inspect-servers";
import { ports } from "@portico/core";
import { cluster } from "@portico/presets/cluster";
import { clusterProblems } from "@portico/presets/cluster/problems";
import { postgresOptions, redisOptions } from "@portico/presets/cluster/store";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { refuseUnfinishedMove } from "./cluster/cluster-app.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import type { StartablePreset } from "./program.ts";

/** How a process of a cluster starts. */
export const startCluster = {
  build: cluster,
  hasNoData: true,
  problems: clusterProblems,
  async prepare(settings) {
    await refuseUnfinishedMove(settings);
    await refuseWithoutRedis(settings);
    return withListener(settings);
  },
  warn: warnOfClock,
  serves: ({ cluster: { surfaces } }) => [...surfaces, "probes"],
} satisfies Partial<StartablePreset>;

/**
 * Throws CommandFailed (69) if Redis is out of reach (open points 11). A process that runs survives without Redis. One that starts would hide a
 * wrong address, password or certificate.
 */
async function refuseWithoutRedis({ cluster }: PlatformSettings): Promise<void> {
  try {
    await inspectRedis(redisOptions(cluster));
  } catch (error) {
    if (!(error instanceof ServerAway)) throw error;
    throw new CommandFailed(error.message, EXIT.unavailable, error);
  }
}

/** Leases count by the database's clock. Sleeps, timeouts and links count by this machine's. */
async function warnOfClock({ cluster }: PlatformSettings, log: ports.Log): Promise<void> {
  try {
    const { clockAheadMs } = await inspectPostgres(postgresOptions(cluster));
    if (Math.abs(clockAheadMs) > cluster.leaseMs) log.warn(CLOCKS_DIFFER, { aheadMs: -clockAheadMs });
  } catch (error) {
    // The app is open, and waits for its database.
    if (!(error instanceof ports.RecordsUnavailable)) throw error;
  }
}

const CLOCKS_DIFFER =
  "The clocks of this machine and of PostgreSQL differ by more than the lease: synchronize the clocks of all machines (NTP)";

/** A process without surfaces has at least the listener of its probes. */
function withListener(settings: PlatformSettings): PlatformSettings {
  const { cluster, probes } = settings;
  if (cluster.surfaces.length > 0 || probes?.listen) return settings;
  return { ...settings, probes: { listen: { host: "127.0.0.1", port: 0 } } };
}
