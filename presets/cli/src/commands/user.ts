import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const exportCommand = defineCommand({
  meta: { name: "export", description: "Write everything that the instance keeps of a user into a new folder" },
  args: {
    userId: { type: "positional", required: true, description: "Id of the user" },
    dir: { type: "positional", required: true, description: "Folder to create, for lines of JSON and files" },
    json: { type: "boolean", description: "Print a JSON object" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { exportUser } = await import("../user/export-user.ts");
    const exported = await exportUser(args, args.userId, args.dir);
    if (args.json) return console.log(JSON.stringify(exported, null, 2));
    console.log(`Exported: ${inWords(exported.counts)}.`);
    if (exported.missing.length > 0) console.log(`The bytes of these files are missing: ${exported.missing.join(", ")}`);
  },
});

const eraseCommand = defineCommand({
  meta: { name: "erase", description: "Remove everything that the instance keeps of a user" },
  args: {
    userId: { type: "positional", required: true, description: "Id of the user" },
    yes: { type: "boolean", description: "Do not ask for confirmation" },
    cancel: { type: "boolean", description: "Stop the user's turns and workflow runs first" },
    json: { type: "boolean", description: "Print a JSON object" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { userId, cancel = false } = args;
    if (!args.yes) {
      const { confirm } = await import("../terminal.ts");
      await confirm(`Everything of the user ${userId} will be removed. Type the user's id to continue: `, userId);
    }
    const { eraseUser } = await import("../user/erase-user.ts");
    const erased = await eraseUser(args, userId, { cancel });
    if (args.json) return console.log(JSON.stringify(erased, null, 2));
    const { userId: _userId, ...counts } = erased;
    console.log(`Erased: ${inWords(counts)}.`);
  },
});

function inWords(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const words = ([name, count]: readonly [string, number]) => `${count} ${name.replace(/([A-Z])/g, " $1").toLowerCase()}`;
  return parts.length === 0 ? "nothing" : parts.map(words).join(", ");
}

export const userCommand = defineCommand({
  meta: { name: "user", description: "Export or erase everything that the instance keeps of a user" },
  subCommands: { export: exportCommand, erase: eraseCommand },
});
