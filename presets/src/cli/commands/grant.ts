import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const issueCommand = defineCommand({
  meta: { name: "issue", description: "Issue an execution grant for one workflow and print it; it is shown this once" },
  args: {
    workflow: { type: "string", required: true, valueHint: "id", description: "The workflow that it is good for" },
    user: { type: "string", valueHint: "id", description: "On whose behalf the run works; default: the instance's owner" },
    binding: { type: "string", valueHint: "id", description: "Binding of the workflow that the run belongs to" },
    ttl: { type: "string", valueHint: "duration", description: "How long it is good for, such as 90s, 10m (default), 2h or 1d" },
    json: { type: "boolean", description: "Print a JSON object, with the time when it expires" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { orderGrant } = await import("../workflows/order-grant.ts");
    const issued = await orderGrant(args, {
      workflowId: args.workflow,
      userId: args.user,
      bindingId: args.binding,
      ttl: args.ttl,
    });
    if (issued.warning !== undefined) console.error(issued.warning);
    console.log(args.json ? JSON.stringify(issued.grant, null, 2) : issued.grant.executionGrantId);
  },
});

export const grantCommand = defineCommand({
  meta: { name: "grant", description: "Issue execution grants, with which programs start workflows" },
  subCommands: { issue: issueCommand },
});
