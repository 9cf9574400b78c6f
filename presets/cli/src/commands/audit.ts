import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const auditCommand = defineCommand({
  meta: { name: "audit", description: "Print who changed what: tokens, grants, secrets, webhooks and decisions" },
  args: {
    since: {
      type: "string",
      valueHint: "time",
      description: "From this time on: a duration before now, such as 12h or 30d, or a time in ISO 8601; default: 7d",
    },
    action: { type: "string", valueHint: "name", description: "Only entries of this action, such as safe-token.issue" },
    address: {
      type: "string",
      valueHint: "address",
      description: "Only entries of callers with this address, or whose address begins so, such as 192.0.2.",
    },
    json: { type: "boolean", description: "Print one line of JSON per entry" },
    follow: { type: "boolean", description: "Print entries as they are recorded, until Ctrl-C" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { printAudit } = await import("../print-audit.ts");
    process.exitCode = await printAudit(args, args);
  },
});
