import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const migrateCommand = defineCommand({
  meta: { name: "migrate", description: "Create the database schema of a cluster, or convert it for this version" },
  args: settingsFlags,
  async run({ args }) {
    const { migrate } = await import("../cluster/migrate.ts");
    console.log(`The schema ${await migrate(args)} has the format of this version.`);
  },
});
