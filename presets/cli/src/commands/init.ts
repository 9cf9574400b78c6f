import { relative } from "node:path";
import { defineCommand } from "citty";
import { ownCommand } from "../own-command.ts";
import { shellWord } from "../terminal.ts";

export const initCommand = defineCommand({
  meta: { name: "init", description: "Create a configuration file, an agent and a workflow in a folder" },
  args: {
    dir: { type: "positional", required: false, description: "Folder of the service; default: this folder" },
    json: { type: "boolean", description: "Print a JSON object" },
  },
  async run({ args }) {
    const { makeInstance } = await import("../scaffold/make-instance.ts");
    const { folder, files, kept } = await makeInstance(args.dir ?? ".", process.cwd());
    const place = relative(process.cwd(), folder);
    const next = [...(place === "" ? [] : [`cd ${shellWord(place)}`]), `${ownCommand(folder)} start`];
    if (args.json) return console.log(JSON.stringify({ folder, files, kept, next }, null, 2));
    if (files.length > 0) console.log(`Created in ${folder}:\n\n${files.map((file) => `  ${file}`).join("\n")}\n`);
    if (kept.length > 0) console.log(`Left as they are:\n\n${kept.map((file) => `  ${file}`).join("\n")}\n`);
    console.log(`Next:\n\n${next.map((command) => `  ${command}`).join("\n")}`);
  },
});
