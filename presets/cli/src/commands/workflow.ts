import { defineCommand } from "citty";
import { type SettingsFlags, settingsFlags } from "../settings-flags.ts";
import {
  followCommand,
  gatesCommand,
  listCommand,
  printJson,
  recordCommand,
  runFlags,
  runsCommand,
  serviceFlags,
  serviceOf,
  showCommand,
  startCommand,
  versionsCommand,
} from "./workflow-runs.ts";

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

const testCommand = defineCommand({
  meta: {
    name: "test",
    description: "Run cases of workflow definitions in memory, with the answers that the cases give to nodes",
  },
  args: {
    files: { type: "positional", required: true, valueHint: "file…", description: "Files of cases in YAML or JSON" },
    json: { type: "boolean", description: "Print a JSON array" },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ testDefinitions }, { printResults }] = await Promise.all([
      import("../workflows/test-definitions.ts"),
      import("../case-lines.ts"),
    ]);
    await printResults(await testDefinitions(args, args._), args.json);
  },
});

const graphCommand = defineCommand({
  meta: { name: "graph", description: "Print the graph of a workflow definition as a Mermaid flowchart" },
  args: {
    file: { type: "positional", required: true, valueHint: "file", description: "Definition file in YAML or JSON" },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ readSettings }, { readNodeRules }, { readDefinitionFile }, { mermaidGraph }] = await Promise.all([
      import("../read-settings.ts"),
      import("../workflows/node-rules.ts"),
      import("../workflows/check-files.ts"),
      import("@portico/plugins/workflow-service/definitions"),
    ]);
    const { settings } = await readSettings(args);
    const rules = await readNodeRules({ settings });
    console.log(mermaidGraph(await readDefinitionFile(args.file, rules)));
  },
});

const schemaCommand = defineCommand({
  meta: { name: "schema", description: "Print the JSON Schema of workflow definitions, for editors" },
  args: { ...settingsFlags },
  async run({ args }) {
    const [{ readSettings }, { readNodeRules }, { definitionJsonSchema }] = await Promise.all([
      import("../read-settings.ts"),
      import("../workflows/node-rules.ts"),
      import("@portico/plugins/workflow-service/definitions"),
    ]);
    const { settings } = await readSettings(args);
    const { types } = await readNodeRules({ settings });
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

const resumeCommand = defineCommand({
  meta: { name: "resume", description: "Resume a failed or interrupted run as a new run, and print the new run's id" },
  args: {
    ...runFlags,
    from: { type: "string", valueHint: "node", description: "Node id where it goes on; default: the nodes that did not finish" },
    as: {
      type: "string",
      valueHint: "again|done",
      description: "Whether that node is repeated or counts as done; default: again",
    },
    output: { type: "string", valueHint: "json", description: "With --as done: the node's output; default: null" },
    definition: {
      type: "string",
      valueHint: "own|current",
      description: "The definition that the run started with, or the deployed one; default: own",
    },
    "dry-run": { type: "boolean", description: "Print what would be kept and repeated, and start nothing" },
    plan: {
      type: "string",
      valueHint: "version",
      description: "The version that --dry-run printed: start nothing with another one",
    },
    json: { type: "boolean", description: "Print a JSON object" },
  },
  async run({ args }) {
    const [{ readResuming }, { planLines }] = await Promise.all([
      import("../workflows/read-parameters.ts"),
      import("../workflows/run-lines.ts"),
    ]);
    const resuming = readResuming(args);
    const service = await serviceOf(args);
    if (args["dry-run"]) {
      const plan = await service.resumePlan({ runId: args.run, workflowId: args.workflow }, resuming);
      return console.log(args.json ? JSON.stringify(plan, null, 2) : planLines(plan));
    }
    const started = await service.resume({ runId: args.run, workflowId: args.workflow }, resuming);
    console.log(args.json ? JSON.stringify(started, null, 2) : started.runId);
  },
});

const rerunCommand = defineCommand({
  meta: { name: "rerun", description: "Start a workflow again with the parameters of a run, and print the new run's id" },
  args: {
    ...runFlags,
    param: { type: "string", valueHint: "name=value…", description: "A parameter that replaces the run's own; repeatable" },
    input: {
      type: "string",
      valueHint: "file.json",
      description: "Parameters that replace the run's own, as a JSON object; - reads standard input",
    },
    without: {
      type: "string",
      valueHint: "name…",
      description: "A parameter of the run that the new run does not get; repeatable",
    },
    json: { type: "boolean", description: "Print a JSON object" },
  },
  async run({ args, rawArgs }) {
    const [{ readParameters }, { valuesOf }] = await Promise.all([
      import("../workflows/read-parameters.ts"),
      import("../command-line.ts"),
    ]);
    const service = await serviceOf(args);
    const { run: runId } = args;
    const workflowId = args.workflow ?? (await service.run({ runId })).workflowId;
    const parameters = await readParameters({
      ...{ input: args.input, params: valuesOf(rawArgs, "param") },
      schema: async () => (await service.definition(workflowId)).parameters,
    });
    const started = await service.rerun({ runId, workflowId }, { parameters, without: valuesOf(rawArgs, "without") });
    console.log(args.json ? JSON.stringify(started, null, 2) : started.runId);
  },
});

const oneFlags = {
  schedule: {
    type: "positional",
    required: true,
    valueHint: "workflow id/name",
    description: "Workflow and name of the schedule",
  },
  json: { type: "boolean", description: "Print a JSON object" },
  ...serviceFlags,
} as const;

const listSchedulesCommand = defineCommand({
  meta: { name: "list", description: "List the schedules of the deployed workflows with their next times" },
  args: {
    failing: { type: "boolean", description: "Only schedules that fail, or cannot start anything" },
    json: { type: "boolean", description: "Print a JSON array" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ chosenSchedules, scheduleTable }, service] = await Promise.all([import("../running-schedules.ts"), serviceOf(args)]);
    const all = await service.schedules();
    const schedules = chosenSchedules(all, args.failing ?? false);
    if (args.json) return printJson(schedules);
    if (schedules.length === 0 && all.length > 0) return console.error("No schedule of a workflow fails.");
    if (schedules.length === 0) return console.error("No workflow has a schedule that is switched on.");
    console.log(scheduleTable(schedules, ({ workflowId }) => workflowId));
  },
});

const triggerCommand = defineCommand({
  meta: { name: "trigger", description: "Start a run now, as the schedule does, and print the run's id" },
  args: oneFlags,
  async run({ args }) {
    const name = await readName(args.schedule);
    const started = await (await serviceOf(args)).triggerSchedule(name);
    if (args.json) return printJson(started);
    console.log(started.runId);
  },
});

const pauseCommand = defineCommand({
  meta: { name: "pause", description: "Start no more runs of a schedule at its planned times" },
  args: oneFlags,
  async run({ args }) {
    const name = await readName(args.schedule);
    await (await serviceOf(args)).pauseSchedule(name);
    if (args.json) return printJson({ schedule: args.schedule, paused: true });
    console.log(`The schedule ${args.schedule} is paused.`);
  },
});

const resumeScheduleCommand = defineCommand({
  meta: { name: "resume", description: "Start runs of a paused schedule at its planned times again" },
  args: oneFlags,
  async run({ args }) {
    const name = await readName(args.schedule);
    await (await serviceOf(args)).resumeSchedule(name);
    if (args.json) return printJson({ schedule: args.schedule, paused: false });
    console.log(`The schedule ${args.schedule} is active.`);
  },
});

const scheduleCommand = defineCommand({
  meta: { name: "schedule", description: "List, start, pause and resume the schedules of workflows" },
  subCommands: { list: listSchedulesCommand, trigger: triggerCommand, pause: pauseCommand, resume: resumeScheduleCommand },
});

/** Throws CommandFailed (64) for a text that does not have the form `WORKFLOW/NAME`. */
async function readName(text: string): Promise<{ readonly id: string; readonly name: string }> {
  const [id, name, ...more] = text.split("/");
  if (id && name && more.length === 0) return { id, name };
  const { CommandFailed, EXIT } = await import("../exit-codes.ts");
  throw new CommandFailed("Write a schedule as WORKFLOW/NAME, such as digest/morning", EXIT.usage);
}

export const workflowCommand = defineCommand({
  meta: { name: "workflow", description: "Check workflow definitions, start and follow runs, decide their gates" },
  subCommands: {
    check: checkCommand,
    test: testCommand,
    record: recordCommand,
    graph: graphCommand,
    schema: schemaCommand,
    list: listCommand,
    versions: versionsCommand,
    start: startCommand,
    follow: followCommand,
    runs: runsCommand,
    show: showCommand,
    gates: gatesCommand,
    approve: approveCommand,
    reject: rejectCommand,
    cancel: cancelCommand,
    resume: resumeCommand,
    rerun: rerunCommand,
    schedule: scheduleCommand,
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
  const { readJsonOption } = await import("../read-options.ts");
  const { run: runId, workflow: workflowId, node, comment, decision } = args;
  const values = readJsonOption("values", args.values);
  const service = await serviceOf(args);
  const { nodeId } = await service.decide({ runId, workflowId }, { decision, nodeId: node, comment, values });
  console.log(`The gate ${nodeId} of the run ${runId} is ${decision === "approve" ? "approved" : "rejected"}.`);
}
