import { type Adapter, allAdapters, flattenPreset, type OpenedPreset, type Port, ports } from "@portico/core";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";
import { type InstanceStores, type OtherStore, otherStores, readStores, storesOf } from "@portico/presets/platform/stores-file";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "./data-directory.ts";
import { isDataDirectoryLocked } from "./data-lock.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { DEFAULT_PRESET, PRESET_NAMES } from "./preset-table.ts";
import { programOf } from "./program.ts";

/**
 * Which stores the instance has: those of the program that was called, or those that the last start wrote down. Undefined for a cluster, and if no
 * start wrote them down: then they are in the data directory.
 */
export function instanceStores(settings: PlatformSettings): InstanceStores | undefined {
  if (namesCluster(settings)) return undefined;
  const { path } = dataDirectory(settings.dataDir);
  const preset = ownPreset(settings);
  return preset ? storesOf(preset, path) : readStores(path);
}

/** The stores of an instance that are not in its data directory. With `only`, among these ports. */
export function storesElsewhere(settings: PlatformSettings, only?: readonly Port<any>[]): readonly OtherStore[] {
  const stores = instanceStores(settings);
  return stores ? otherStores(stores, only) : [];
}

/** `The preset shop keeps its records in records/postgres, and its log in log/postgres`. */
export function elsewhereInWords(settings: PlatformSettings, elsewhere: readonly OtherStore[]): string {
  const name = instanceStores(settings)?.preset ?? "";
  return `The preset ${name} keeps ${elsewhere.map(({ port, kind }) => `its ${port} in ${kind}`).join(", and ")}`;
}

/** Throws CommandFailed (78) for a command that knows only the stores of a data directory, if the instance has others. */
export function refuseOtherStores(settings: PlatformSettings, words: string): void {
  const elsewhere = storesElsewhere(settings);
  if (elsewhere.length > 0) throw new CommandFailed(`${elsewhereInWords(settings, elsewhere)}: ${words}`, EXIT.config);
}

/** Whether the instance has a preset of its own, which may have sources of tools beside the configured MCP servers. */
export function mayHaveOwnTools(settings: PlatformSettings): boolean {
  const own = ownPreset(settings);
  if (!own) return !PRESET_NAMES.includes(instanceStores(settings)?.preset ?? DEFAULT_PRESET);
  const sources = own.adapters.filter(({ spec }) => spec.port.id === ports.tools.id);
  return sources.length > Object.keys(settings.mcpServers).length;
}

/** The preset of the program that was called, not opened. Undefined for `portico`. */
export function ownPreset(settings: PlatformSettings, providers: readonly ServedProvider[] = []): OpenedPreset | undefined {
  const built = programOf(settings)?.preset.build({ settings, providers });
  if (!built) return undefined;
  const flat = flattenPreset(built);
  return { name: flat.name, adapters: allAdapters(flat) };
}

/**
 * The adapters of the program's own preset for these ports, and for what they need. Throws CommandFailed: 78 for `portico`, which does not know
 * them, and for stores in memory; 75 while the service runs, because its stores may allow only one process.
 */
export function ownStores(
  settings: PlatformSettings,
  needed: readonly Port<any>[],
  elsewhere: readonly OtherStore[],
): readonly Adapter[] {
  const words = elsewhereInWords(settings, elsewhere);
  const own = ownPreset(settings);
  if (!own)
    throw new CommandFailed(
      `${words}, which portico does not know: call the program of the preset with this command, such as node src/main.ts COMMAND`,
      EXIT.config,
    );
  if (elsewhere.some(({ kind }) => kind.endsWith("/memory")))
    throw new CommandFailed(`${words}, which ends with its process: a command cannot use it`, EXIT.config);
  if (isDataDirectoryLocked(dataDirectory(settings.dataDir)))
    throw new CommandFailed(`${words}: stop the service first, because a command may not share these stores with it`, EXIT.inUse);
  const found = new Set<Adapter>();
  const take = (ids: readonly string[]) => {
    for (const adapter of own.adapters) {
      if (!ids.includes(adapter.spec.port.id) || found.has(adapter)) continue;
      found.add(adapter);
      take(Object.values(adapter.spec.needs as Readonly<Record<string, Port<unknown>>>).map(({ id }) => id));
    }
  };
  take(needed.map(({ id }) => id));
  return [...found].filter(({ spec }) => spec.port.id !== ports.telemetry.id);
}
