import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const usageCommand = defineCommand({
  meta: { name: "usage", description: "Print how many calls of models were made, and what they used and cost" },
  args: {
    since: {
      type: "string",
      valueHint: "time",
      description: "From this time on: a duration before now, such as 12h or 30d, or a time in ISO 8601; default: 24h",
    },
    step: { type: "string", valueHint: "minute|hour|day", description: "One line per step; default: the whole time" },
    by: {
      type: "string",
      valueHint: "fields",
      description: "One line per combination of source, provider, model, userId, agentId, workflowId, tokenId; default: model",
    },
    json: { type: "boolean", description: "Print one line of JSON per group" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { printUsage } = await import("../print-usage.ts");
    process.exitCode = await printUsage(args, args);
  },
});
