import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const restoreCommand = defineCommand({
  meta: { name: "restore", description: "Put an archive of `portico backup` into an empty or missing data directory" },
  args: {
    file: { type: "positional", required: true, description: "The archive" },
    "keep-documents": { type: "boolean", description: "Leave agents and workflow definitions as they are" },
    json: { type: "boolean", description: "Print a JSON object" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { restore } = await import("../backup/restore.ts");
    const restored = await restore(args, args.file, { keepDocuments: args["keep-documents"] ?? false });
    if (args.json) return console.log(JSON.stringify(restored, null, 2));
    for (const warning of restored.warnings) console.error(`Warning: ${warning}`);
    const { dataDir, entries, createdAt, version } = restored;
    console.log(`${dataDir}: ${entries} files of ${createdAt}, written by version ${version}.`);
  },
});
