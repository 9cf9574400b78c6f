import { defineCommand } from "citty";
import { type SettingsFlags, settingsFlags } from "../settings-flags.ts";
import { followCommand, listCommand, runFlags, runsCommand, serviceOf, showCommand, startCommand } from "./workflow-runs.ts";

const checkCommand = defineCommand({
  meta: { name: "check", description: "Check workflow definitions; print each problem as FILE:LINE:COLUMN: message" },
  args: {
    files: {
      type: "positional",
      required: true,
      valueHint: "path…",
      description: "Definition files in YAML or JSON, or folders of them",
    },
    strict: { type: "boolean", description: "Also exit with code 1 if there are only warnings" },
    preset: { type: "string", valueHint: "name", description: "Preset that will run them; default: local" },
    json: { type: "boolean", description: "Print a JSON array" },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ checkFiles }, { EXIT }] = await Promise.all([import("../workflows/check-files.ts"), import("../exit-codes.ts")]);
    const problems = await checkFiles(args, { files: args._, preset: args.preset });
    if (args.json) console.log(JSON.stringify(problems, null, 2));
    else {
      for (const { file, severity, line, column, message } of problems) {
        console.log(`${file}:${line}:${column}: ${severity === "warning" ? "warning: " : ""}${message}`);
      }
    }
    const isWrong = problems.some(({ severity }) => severity === "error" || args.strict);
    process.exitCode = isWrong ? EXIT.failed : EXIT.ok;
  },
});

const schemaCommand = defineCommand({
  meta: { name: "schema", description: "Print the JSON Schema of workflow definitions, for editors" },
  args: { ...settingsFlags },
  async run({ args }) {
    const [{ readSettings }, { readNodeRules }, { definitionJsonSchema }, { DEFAULT_PRESET }] = await Promise.all([
      import("../read-settings.ts"),
      import("../workflows/node-rules.ts"),
      import("@portico/plugins/workflow-service/definitions"),
      import("../preset-table.ts"),
    ]);
    const { settings } = await readSettings(args);
    const { types } = await readNodeRules({ settings, preset: DEFAULT_PRESET });
    console.log(JSON.stringify(definitionJsonSchema(types, { isClosed: true }), null, 2));
  },
});

const gateFlags = {
  ...runFlags,
  node: { type: "string", valueHint: "id", description: "Node id of the gate; default: the waiting gate" },
  comment: { type: "string", valueHint: "text", description: "Comment that is stored with the decision" },
} as const;

const approveCommand = defineCommand({
  meta: { name: "approve", description: "Approve the gate at which a run waits" },
  args: {
    ...gateFlags,
    values: { type: "string", valueHint: "json", description: "Values of the gate's form, as a JSON object" },
  },
  run: ({ args }) => decide({ ...args, decision: "approve" }),
});

const rejectCommand = defineCommand({
  meta: { name: "reject", description: "Reject the gate at which a run waits" },
  args: {
    ...gateFlags,
    values: { type: "string", valueHint: "json", description: "Values that are sent with the decision, as a JSON object" },
  },
  run: ({ args }) => decide({ ...args, decision: "reject" }),
});

const cancelCommand = defineCommand({
  meta: { name: "cancel", description: "Cancel a run" },
  args: runFlags,
  async run({ args }) {
    const service = await serviceOf(args);
    const { runId } = await service.cancel({ runId: args.run, workflowId: args.workflow });
    console.log(`The run ${runId} is being cancelled.`);
  },
});

export const workflowCommand = defineCommand({
  meta: { name: "workflow", description: "Check workflow definitions, start and follow runs, decide their gates" },
  subCommands: {
    check: checkCommand,
    schema: schemaCommand,
    list: listCommand,
    start: startCommand,
    follow: followCommand,
    runs: runsCommand,
    show: showCommand,
    approve: approveCommand,
    reject: rejectCommand,
    cancel: cancelCommand,
  },
});

interface DecideArguments extends SettingsFlags {
  readonly run: string;
  readonly workflow?: string | undefined;
  readonly url?: string | undefined;
  readonly node?: string | undefined;
  readonly comment?: string | undefined;
  readonly values?: string | undefined;
  readonly decision: "approve" | "reject";
}

async function decide(args: DecideArguments): Promise<void> {
  const { readValues } = await import("../workflows/read-values.ts");
  const { run: runId, workflow: workflowId, node, comment, decision } = args;
  const values = readValues(args.values);
  const service = await serviceOf(args);
  const { nodeId } = await service.decide({ runId, workflowId }, { decision, nodeId: node, comment, values });
  console.log(`The gate ${nodeId} of the run ${runId} is ${decision === "approve" ? "approved" : "rejected"}.`);
}
