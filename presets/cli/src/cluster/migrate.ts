import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { memoryBus } from "@portico/adapters/bus/memory";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { memoryLog } from "@portico/adapters/log/memory";
import { memoryPresence } from "@portico/adapters/presence/memory";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { MOVES } from "@portico/cluster/stores/move-store";
import { migratePostgresStore } from "@portico/cluster/stores/postgres";
import { createApp, defineAdapter, type Port, ports } from "@portico/core";
import { cluster } from "@portico/presets/cluster";
import { postgresOptions } from "@portico/presets/cluster/store";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { SettingsFlags } from "../settings-flags.ts";
import { readClusterSettings, toCommandFailed } from "./cluster-app.ts";

/**
 * Create the schema of a cluster with all tables and indexes of its plugins, or convert it to the format of this version. Returns its name. Throws
 * CommandFailed (69, 78).
 */
export async function migrate(flags: SettingsFlags): Promise<string> {
  const settings = await readClusterSettings(flags);
  const { url, directUrl = url, schema, tls } = postgresOptions(settings.cluster);
  try {
    await migratePostgresStore({ url: directUrl, schema, tls, collections: await declaredCollections(settings) });
  } catch (error) {
    throw toCommandFailed(error);
  }
  return schema;
}

/** Ports whose adapters in the preset work without a server, a folder, a program or a network. */
const KEPT: readonly Port<any>[] = [
  ...[ports.identity, ports.secrets, ports.signing, ports.sealing, ports.documents],
  ...[ports.agents, ports.agentEngines, ports.workflowNodes, ports.realtime, ports.audit, ports.usage, ports.schedules],
];

/**
 * The collections that the preset `cluster` uses. Opens its plugins over stores in memory and notes what they ask for, so that no list
 * has to be kept beside the plugins.
 */
async function declaredCollections(settings: PlatformSettings): Promise<readonly ports.CollectionSpec[]> {
  const declared = new Map<string, ports.CollectionSpec>([[MOVES.name, MOVES]]);
  const noting = defineAdapter({
    name: "records/noting",
    port: ports.records,
    needs: {},
    open(_given, _options: void, scope): ports.Records {
      const { records, close } = createMemoryRecords();
      scope.onClose(close);
      return {
        ...records,
        collection(spec) {
          declared.set(spec.name, spec);
          return records.collection(spec);
        },
      };
    },
  });
  // Documents in folders have no collections. With the database, both kinds of places are prepared.
  const inDatabase = { ...settings, cluster: { ...settings.cluster, documents: "database" as const } };
  const preset = cluster({ settings: inDatabase, providers: [] });
  const kept = (preset.adapters ?? []).filter(({ spec }) => KEPT.some(({ id }) => id === spec.port.id));
  const inMemory = [
    noting(),
    memoryLog(),
    memoryEngine({}),
    memoryBlobs(),
    memoryBus({}),
    memoryPresence({}),
    memoryTelemetry({}),
  ];
  const app = await createApp({ ...preset, name: "declared-collections", adapters: [...kept, ...inMemory] });
  await app.close();
  return [...declared.values()];
}
