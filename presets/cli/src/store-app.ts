import { existsSync } from "node:fs";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import {
  type Adapter,
  type App,
  createApp,
  findStoreMismatch,
  findStoreTooNew,
  isStoreAway,
  type Port,
  ports,
} from "@portico/core";
import { clusterProblems } from "@portico/presets/cluster/problems";
import { instanceAudit, instanceUsage } from "@portico/presets/platform/audit-and-usage";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { checkDirectoryFormat, dataDirectory, NEWER_STORE_HELP } from "./data-directory.ts";
import { lockDataDirectory, makeDataDirectory } from "./data-lock.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { ownStores, storesElsewhere } from "./instance-stores.ts";

/** Whether the instance has stores. Always true for a cluster, and for stores outside of the data directory. */
export function hasStore(settings: PlatformSettings): boolean {
  return (
    namesCluster(settings) ||
    storesElsewhere(settings, [ports.records]).length > 0 ||
    existsSync(dataDirectory(settings.dataDir).records)
  );
}

/**
 * Opens stores of the instance for a command, in the data directory or on the servers of a cluster, and with `records` its audit. `usage` is in its records. Works with and without a running
 * service: both see each other's writes immediately. If the instance keeps one of these stores elsewhere, all are those of the program's own preset.
 * Throws CommandFailed: 69 if a store is unavailable, 75 while a service uses stores that cannot be shared, 78 for settings or a store that cannot
 * be used, and for stores that this program does not know.
 */
export async function withStores<T>(
  settings: PlatformSettings,
  { needed }: { readonly needed: readonly Port<any>[] },
  use: (app: App) => Promise<T>,
): Promise<T> {
  const wanted = needed.includes(ports.records) ? [...needed, ports.audit] : needed;
  const elsewhere = storesElsewhere(settings, wanted);
  let app: App | undefined;
  let unlock = () => {};
  try {
    const adapters = elsewhere.length > 0 ? ownStores(settings, wanted, elsewhere) : await usualStores(settings, wanted);
    if (elsewhere.length > 0) unlock = lockForCommand(settings);
    app = await createApp({ name: "command", adapters });
    return await use(app);
  } catch (error) {
    const tooNew = findStoreTooNew(error);
    if (tooNew) throw new CommandFailed(`${tooNew.message}. ${NEWER_STORE_HELP}`, EXIT.config, error);
    const mismatch = findStoreMismatch(error);
    if (mismatch) throw new CommandFailed(mismatch.message, EXIT.config, error);
    if (isStoreAway(error) || error instanceof ports.SecretsUnavailable || error instanceof ports.BlobsUnavailable)
      throw new CommandFailed((error as Error).message, EXIT.unavailable, error);
    throw error;
  } finally {
    await app?.close();
    unlock();
  }
}

function lockForCommand({ dataDir }: PlatformSettings): () => void {
  const directory = dataDirectory(dataDir);
  makeDataDirectory(directory);
  return lockDataDirectory(directory);
}

async function usualStores(settings: PlatformSettings, wanted: readonly Port<any>[]): Promise<readonly Adapter[]> {
  const inRecords = [ports.audit, ports.usage] as readonly Port<any>[];
  const store = await storeOf(
    settings,
    wanted.filter((port) => !inRecords.includes(port)),
  );
  // Commands remove no old entries: services do.
  const audit = instanceAudit({ audit: { ...settings.audit, keep: "forever" } });
  return [
    ...store,
    ...(wanted.includes(ports.audit) ? [audit] : []),
    ...(wanted.includes(ports.usage) ? [instanceUsage(settings)] : []),
  ];
}

async function storeOf(settings: PlatformSettings, needed: readonly Port<any>[]): Promise<readonly Adapter[]> {
  if (!namesCluster(settings)) {
    const directory = dataDirectory(settings.dataDir);
    checkDirectoryFormat(directory);
    return sqliteStore({ dir: directory.path, ports: needed });
  }
  const problems = clusterProblems(settings);
  if (problems.length > 0) throw new CommandFailed(problems.join("\n"), EXIT.config);
  // Only here, because other commands need no drivers of servers.
  return (await import("@portico/presets/cluster/store")).clusterStore(settings, needed);
}
