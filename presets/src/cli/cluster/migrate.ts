import { migratePostgresStore } from "@portico/adapters/stores/postgres";
import { ports } from "@portico/core";
import { postgresOptions } from "../../platform/cluster-store.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { readClusterSettings } from "./cluster-settings.ts";

/** Create the schema of a cluster, or convert it to the format of this version. Returns its name. Throws CommandFailed (69, 78). */
export async function migrate(flags: SettingsFlags): Promise<string> {
  const { cluster } = await readClusterSettings(flags);
  const { url, schema, tls } = postgresOptions(cluster);
  try {
    await migratePostgresStore({ url, schema, tls });
  } catch (error) {
    if (error instanceof ports.RecordsUnavailable) throw new CommandFailed(error.message, EXIT.unavailable, error);
    throw error;
  }
  return schema;
}
