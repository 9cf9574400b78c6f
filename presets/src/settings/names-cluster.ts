import type { PlatformSettings } from "./platform.ts";

/** Whether the settings name the servers of a cluster: commands then work on its stores, and on a data directory otherwise. */
export function namesCluster({ cluster }: Pick<PlatformSettings, "cluster">): boolean {
  return cluster.postgres.url !== undefined;
}
