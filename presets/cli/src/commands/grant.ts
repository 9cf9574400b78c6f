import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const issueCommand = defineCommand({
  meta: { name: "issue", description: "Issue an execution grant for one workflow and print it; it is shown only once" },
  args: {
    workflow: { type: "string", required: true, valueHint: "id", description: "Id of the workflow that the grant may start" },
    user: { type: "string", valueHint: "id", description: "User on whose behalf the run works; default: the instance's owner" },
    binding: { type: "string", valueHint: "id", description: "Id of the workflow's binding that the run belongs to" },
    edit: { type: "boolean", description: "Issue a grant to test and write the definition, which starts no run" },
    ttl: { type: "string", valueHint: "duration", description: "Lifetime of the grant, such as 90s, 10m (default), 2h or 1d" },
    json: { type: "boolean", description: "Print a JSON object with the grant and its expiry time" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { orderGrant } = await import("../workflows/issue-grant.ts");
    const issued = await orderGrant(args, {
      workflowId: args.workflow,
      userId: args.user,
      bindingId: args.binding,
      edits: args.edit,
      ttl: args.ttl,
    });
    if (issued.warning !== undefined) console.error(issued.warning);
    console.log(args.json ? JSON.stringify(issued.grant, null, 2) : issued.grant.executionGrantId);
  },
});

export const grantCommand = defineCommand({
  meta: { name: "grant", description: "Issue execution grants, which programs use to start workflows" },
  subCommands: { issue: issueCommand },
});
