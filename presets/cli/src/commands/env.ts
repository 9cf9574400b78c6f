import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const envCommand = defineCommand({
  meta: {
    name: "env",
    description: 'Print the addresses and tokens of the running service as variables of a shell: eval "$(portico env)"',
  },
  args: {
    json: { type: "boolean", description: "Print a JSON object" },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ readVariables }, { shellWord }] = await Promise.all([import("../running-variables.ts"), import("../terminal.ts")]);
    const variables = await readVariables(args);
    if (args.json) return console.log(JSON.stringify(variables, null, 2));
    for (const [name, value] of Object.entries(variables)) console.log(`export ${name}=${shellWord(value)}`);
  },
});
