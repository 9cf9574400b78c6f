import { migratePostgresStore } from "@portico/cluster/stores/postgres";
import { postgresOptions } from "@portico/presets/cluster/store";
import type { SettingsFlags } from "../settings-flags.ts";
import { toCommandFailed } from "./cluster-app.ts";
import { readClusterSettings } from "./cluster-settings.ts";
import { declaredCollections } from "./declared-collections.ts";

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
