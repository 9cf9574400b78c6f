import { defineCommand } from "citty";
import { type SettingsFlags, settingsFlags } from "../settings-flags.ts";

const serviceFlags = {
  url: {
    type: "string",
    valueHint: "url",
    description: "Address of the agent service; default: the service that uses the data directory",
  },
  ...settingsFlags,
} as const;

const listCommand = defineCommand({
  meta: { name: "list", description: "List the calls of tools that wait for a decision, the oldest first" },
  args: {
    json: { type: "boolean", description: "Print a JSON array" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ approvalLines }, approvals] = await Promise.all([import("../find-approvals.ts"), approvalsOf(args)]);
    const waiting = await approvals.waiting();
    if (args.json) return printJson(waiting);
    if (waiting.length === 0) return console.error("No call waits for a decision.");
    const more = (["config", "data-dir", "url"] as const).flatMap((name) =>
      args[name] === undefined ? [] : [`--${name}`, args[name]],
    );
    console.log(waiting.map((each) => approvalLines(each, more)).join("\n\n"));
  },
});

const callFlags = {
  run: { type: "positional", required: true, valueHint: "run id", description: "Id of the run" },
  call: {
    type: "positional",
    required: true,
    valueHint: "call id",
    description: "Id of the call, from `portico approvals list`",
  },
  comment: { type: "string", valueHint: "text", description: "Comment that the model reads" },
  ...serviceFlags,
} as const;

const approveCommand = defineCommand({
  meta: { name: "approve", description: "Approve a call: the tool runs, and the turn goes on" },
  args: {
    ...callFlags,
    arguments: { type: "string", valueHint: "json", description: "Arguments in place of the model's, as a JSON object" },
    standing: { type: "boolean", description: "Approve all later calls of this tool that the agent makes for the run's user" },
  },
  async run({ args }) {
    const { CommandFailed, EXIT } = await import("../exit-codes.ts");
    if (args.standing && args.arguments !== undefined)
      throw new CommandFailed("Use either --arguments or --standing, not both", EXIT.usage);
    await decide({ ...args, decision: "approve" });
  },
});

const rejectCommand = defineCommand({
  meta: { name: "reject", description: "Reject a call: the tool does not run, and the model is told" },
  args: callFlags,
  run: ({ args }) => decide({ ...args, decision: "reject" }),
});

const consentsCommand = defineCommand({
  meta: { name: "consents", description: "List standing consents: tools whose calls run without a decision" },
  args: {
    json: { type: "boolean", description: "Print a JSON array" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ table }, approvals] = await Promise.all([import("../terminal.ts"), approvalsOf(args)]);
    const consents = await approvals.consents();
    if (args.json) return printJson(consents);
    if (consents.length === 0) return console.error("There are no standing consents.");
    console.log(
      table(
        ["CONSENT ID", "USER", "AGENT", "TOOL", "GRANTED"],
        consents.map(({ id, userId, agentId, toolId, grantedAt }) => [id, userId, agentId, toolId, grantedAt]),
      ),
    );
  },
});

const revokeCommand = defineCommand({
  meta: { name: "revoke", description: "Revoke a standing consent: later calls of the tool ask again" },
  args: {
    consent: {
      type: "positional",
      required: true,
      valueHint: "consent id",
      description: "Id of the consent, from `portico approvals consents`",
    },
    ...serviceFlags,
  },
  async run({ args }) {
    await (await approvalsOf(args)).revoke(args.consent);
    console.log(`The consent ${args.consent} is revoked.`);
  },
});

export const approvalsCommand = defineCommand({
  meta: { name: "approvals", description: "List and decide the calls of tools that wait for a person; default: list" },
  default: "list",
  subCommands: {
    list: listCommand,
    approve: approveCommand,
    reject: rejectCommand,
    consents: consentsCommand,
    revoke: revokeCommand,
  },
});

interface ServiceFlags extends SettingsFlags {
  readonly url?: string | undefined;
}

async function approvalsOf(args: ServiceFlags) {
  const [{ readSettings }, { findApprovals }] = await Promise.all([
    import("../read-settings.ts"),
    import("../find-approvals.ts"),
  ]);
  return findApprovals((await readSettings(args)).settings, args.url);
}

interface DecideArguments extends ServiceFlags {
  readonly run: string;
  readonly call: string;
  readonly decision: "approve" | "reject";
  readonly arguments?: string | undefined;
  readonly comment?: string | undefined;
  readonly standing?: boolean | undefined;
}

async function decide(args: DecideArguments): Promise<void> {
  const { readJsonOption } = await import("../read-options.ts");
  const { run: runId, call: callId, decision, comment, standing } = args;
  const given = readJsonOption("arguments", args.arguments);
  await (await approvalsOf(args)).decide({ ...{ runId, callId, decision, comment, standing }, arguments: given });
  console.log(`The call ${callId} of the run ${runId} is ${decision === "approve" ? "approved" : "rejected"}.`);
}

async function printJson(value: unknown): Promise<void> {
  const { printableJson } = await import("../terminal.ts");
  console.log(printableJson(value, 2));
}
