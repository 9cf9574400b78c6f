import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const backupCommand = defineCommand({
  meta: {
    name: "backup",
    description: "Copy the data directory and the documents into one archive, also while the service runs",
  },
  args: {
    file: {
      type: "positional",
      required: true,
      description: "The archive to write (tar). It holds secrets: protect it like a key",
    },
    gzip: { type: "boolean", description: "Compress the archive" },
    force: { type: "boolean", description: "Replace an existing archive" },
    json: { type: "boolean", description: "Print a JSON object" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { backUp } = await import("../backup/back-up.ts");
    const backup = await backUp(args, args.file, { force: args.force ?? false, gzip: args.gzip ?? false });
    if (args.json) return console.log(JSON.stringify(backup, null, 2));
    for (const warning of backup.warnings) console.error(`Warning: ${warning}`);
    console.log(`${backup.file}: ${backup.entries} files, ${backup.bytes} bytes. It holds secrets: protect it like a key.`);
  },
});
