import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const { config } = settingsFlags;

export const moveCommand = defineCommand({
  meta: { name: "move", description: "Copy an instance of this machine into a cluster without data, and compare both" },
  args: {
    from: {
      type: "string",
      required: true,
      valueHint: "dir",
      description: "Data directory of the instance; nothing may run on it",
    },
    json: { type: "boolean", description: "Print a JSON object" },
    config,
  },
  async run({ args }) {
    const { moveInstance } = await import("../cluster/move.ts");
    const onPart = (part: string) => process.stderr.isTTY && console.error(`Moving: ${part}`);
    const moved = await moveInstance(args, args.from, onPart);
    if (args.json) return console.log(JSON.stringify(moved, null, 2));
    for (const [part, count] of Object.entries(moved)) console.log(`${part.padEnd(10)} ${count}`);
    console.log(`Everything was compared. ${args.from} still has its data: do not start it again.`);
  },
});
