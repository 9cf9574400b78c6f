import { isMoveUnfinished } from "@portico/cluster/stores/move-store";
import { type Adapter, type App, createApp, findStoreMismatch, isStoreAway, ports } from "@portico/core";
import { clusterProblems } from "@portico/presets/cluster/problems";
import { clusterStore } from "@portico/presets/cluster/store";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";

/** Open stores of a cluster for a command, and close them afterwards. Throws what `toCommandFailed` makes of errors. */
export async function withClusterApp<T>(adapters: readonly Adapter[], use: (app: App) => Promise<T>): Promise<T> {
  let app: App | undefined;
  try {
    app = await createApp({ name: "cluster-command", adapters });
    return await use(app);
  } catch (error) {
    throw toCommandFailed(error);
  } finally {
    await app?.close();
  }
}

/** Errors of stores as CommandFailed: 78 for a schema of another version, 69 if the store is unavailable. Other errors stay unchanged. */
export function toCommandFailed(error: unknown): unknown {
  const mismatch = findStoreMismatch(error);
  if (mismatch) return new CommandFailed(mismatch.message, EXIT.config, error);
  const isOutside =
    isStoreAway(error) ||
    error instanceof ports.BlobsUnavailable ||
    error instanceof ports.DocumentsUnavailable ||
    error instanceof ports.SecretsUnavailable;
  return isOutside ? new CommandFailed((error as Error).message, EXIT.unavailable, error) : error;
}

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

/** Throws CommandFailed (78) if `portico move` into this cluster has not finished: a part of the data is missing. */
export async function refuseUnfinishedMove(settings: PlatformSettings): Promise<void> {
  const isUnfinished = await withClusterApp(clusterStore(settings, [ports.records]), (app) =>
    isMoveUnfinished(app.port(ports.records)),
  );
  if (isUnfinished) throw new CommandFailed(UNFINISHED_MOVE, EXIT.config);
}

/** What to do about an unfinished move. */
export const UNFINISHED_MOVE =
  "A move into this cluster has not finished, and a part of its data is missing: repeat the move, or choose an empty schema";
