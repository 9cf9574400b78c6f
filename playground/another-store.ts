// A preset with another store: the records are in the application's own database. It starts as `portico start` does, and runs its commands.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { defineAdapter, definePreset, ports } from "@portico/core";
import { local, localSchema, type PlatformOptions } from "@portico/presets/local";
import { startPreset } from "portico/start";
import { appRecords } from "./own-storage.ts";
import { counterNode } from "./own-workflow-node.ts";

/** The records in a database file of the application. */
export const shopRecords = defineAdapter({
  name: "records/shop",
  port: ports.records,
  needs: {},
  place: ({ path }: { readonly path: string }) => path,
  open(given, { path }: { readonly path: string }, scope) {
    const database = new DatabaseSync(path);
    scope.onClose(() => database.close());
    return appRecords({ database }).spec.open(given, { database }, scope);
  },
});

/** Everything of `local`. Records, log and engine go together: beside other records, the other two need files of their own. */
export const shop = definePreset((options: PlatformOptions) => {
  const { dataDir } = options.settings;
  return {
    name: "shop",
    extends: local(options),
    adapters: [
      shopRecords({ path: join(dataDir, "shop.sqlite") }),
      sqliteLog({ path: join(dataDir, "log.sqlite") }),
      embeddedEngine({ path: join(dataDir, "journal.sqlite") }),
      counterNode({}),
    ],
  };
});

if (import.meta.main) {
  await startPreset({ name: "shop", description: "A shop with its own database", schema: localSchema, build: shop });
}
