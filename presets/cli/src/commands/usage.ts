import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const usageCommand = defineCommand({
  meta: {
    name: "usage",
    description: "Print what models were used for and cost, compared with the time before, and the use of daily limits",
  },
  args: {
    since: {
      type: "string",
      valueHint: "time",
      description: "From this time on: a duration before now, such as 12h or 30d, a day, or a time in ISO 8601; default: 24h",
    },
    until: { type: "string", valueHint: "time", description: "Until this time, or the end of this day; default: now" },
    range: {
      type: "string",
      valueHint: "word",
      description:
        "In place of --since: hour, day, today, yesterday, last-7-days, last-week, last-30-days, this-month or last-month",
    },
    step: { type: "string", valueHint: "minute|hour|day", description: "One line per step in place of the table" },
    by: {
      type: "string",
      valueHint: "fields",
      description:
        "source, provider, model, userId, agentId, workflowId or tokenId; several print one line per combination; default: model",
    },
    csv: { type: "boolean", description: "Print the table as CSV, for spreadsheets" },
    json: { type: "boolean", description: "Print one line of JSON per group" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { printUsage } = await import("../print-usage.ts");
    process.exitCode = await printUsage(args, args);
  },
});
