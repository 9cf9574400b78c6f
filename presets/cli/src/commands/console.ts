import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const consoleCommand = defineCommand({
  meta: { name: "console", description: "Print a link that opens the web console of a running service, signed in" },
  args: {
    url: {
      type: "string",
      valueHint: "address",
      description: "Address of the agent service; default: the service that runs with this data directory",
    },
    json: { type: "boolean", description: "Print a JSON object with the link and its expiry time" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { orderLink } = await import("../order-link.ts");
    const link = await orderLink(args, args.url);
    console.log(args.json ? JSON.stringify(link, null, 2) : link.url);
  },
});
