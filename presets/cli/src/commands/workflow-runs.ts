import { defineCommand } from "citty";
import { type SettingsFlags, settingsFlags } from "../settings-flags.ts";

/** Flags of every command that calls a running service. */
export const serviceFlags = {
  url: {
    type: "string",
    valueHint: "url",
    description: "Address of the workflow service; default: the service that uses the data directory",
  },
  ...settingsFlags,
} as const;

/** Flags of every command about one run. */
export const runFlags = {
  run: { type: "positional", required: true, valueHint: "run id", description: "Id of the run" },
  workflow: { type: "string", valueHint: "id", description: "Id of its workflow; default: the service finds it" },
  ...serviceFlags,
} as const;

export const listCommand = defineCommand({
  meta: { name: "list", description: "List the deployed workflows with their last runs" },
  args: {
    json: { type: "boolean", description: "Print a JSON object" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ brokenLines, workflowTable }, service] = await Promise.all([import("../workflows/run-lines.ts"), serviceOf(args)]);
    const answer = await service.deployed();
    const { workflows, broken } = answer;
    // On standard error, so that the output for programs stays clean.
    if (broken.length > 0) console.error(brokenLines(broken));
    if (args.json) return printJson(answer);
    if (workflows.length === 0) return console.error("No workflows are deployed.");
    console.log(workflowTable(workflows));
  },
});

export const versionsCommand = defineCommand({
  meta: { name: "versions", description: "List the versions of a definition that runs used, and what changed, newest first" },
  args: {
    workflow: { type: "positional", required: true, valueHint: "workflow id", description: "Which workflow" },
    json: { type: "boolean", description: "Print a JSON object" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ versionLines }, service] = await Promise.all([import("../workflows/run-lines.ts"), serviceOf(args)]);
    const answer = await service.versions(args.workflow);
    if (args.json) return printJson(answer);
    console.log(versionLines(answer.versions));
  },
});

export const startCommand = defineCommand({
  meta: { name: "start", description: "Start a run of a workflow and print the run's id" },
  args: {
    workflow: { type: "positional", required: true, valueHint: "workflow id", description: "Which workflow" },
    param: {
      type: "string",
      valueHint: "name=value…",
      description:
        "A parameter; repeatable. The value is JSON, or a string if the workflow expects a string or the value is not JSON",
    },
    input: { type: "string", valueHint: "file.json", description: "Parameters as a JSON object; - reads standard input" },
    "idempotency-key": {
      type: "string",
      valueHint: "key",
      description: "A name for this start: the same start with the same key again gets the same run, for 24 hours",
    },
    follow: { type: "boolean", description: "Follow the run to its end, as the command `follow` does" },
    json: { type: "boolean", description: "Print a JSON object; with --follow one line of JSON per event" },
    ...serviceFlags,
  },
  async run({ args, rawArgs }) {
    const [{ readIdempotencyKey, readParameters }, { valuesOf }] = await Promise.all([
      import("../workflows/read-parameters.ts"),
      import("../command-line.ts"),
    ]);
    const key = readIdempotencyKey(args["idempotency-key"]);
    const service = await serviceOf(args);
    const parameters = await readParameters({
      ...{ input: args.input, params: valuesOf(rawArgs, "param") },
      schema: async () => (await service.definition(args.workflow)).parameters,
    });
    const started = await service.trigger(args.workflow, parameters, key);
    if (args.follow) return follow(args, started);
    if (args.json) return printJson(started);
    console.log(started.runId);
  },
});

export const followCommand = defineCommand({
  meta: { name: "follow", description: "Follow a run to its end; Ctrl-C stops only the following, not the run" },
  args: {
    ...runFlags,
    json: { type: "boolean", description: "Print one line of JSON per event" },
  },
  run: ({ args }) => follow(args, { runId: args.run, workflowId: args.workflow }),
});

export const runsCommand = defineCommand({
  meta: { name: "runs", description: "Find runs, newest first" },
  args: {
    workflow: { type: "positional", required: false, valueHint: "workflow id", description: "Which workflow; default: all" },
    status: { type: "string", valueHint: "status", description: "Only runs with this status, such as waiting_human or failed" },
    since: {
      type: "string",
      valueHint: "when",
      description: "Only runs that began since this duration (12h) or time (ISO 8601)",
    },
    until: { type: "string", valueHint: "when", description: "Only runs that began before this duration or time" },
    text: { type: "string", valueHint: "words", description: "Only runs whose error contains these words" },
    error: { type: "string", valueHint: "code", description: "Only runs whose error has this code, such as http_status" },
    param: { type: "string", valueHint: "name=value…", description: "Only runs with this searchable parameter; repeatable" },
    output: { type: "string", valueHint: "name=value…", description: "Only runs with this searchable output; repeatable" },
    definition: { type: "string", valueHint: "hash", description: "Only runs of this version of the definition" },
    limit: { type: "string", valueHint: "number", description: "Maximum number of runs; default: 20" },
    json: { type: "boolean", description: "Print a JSON object" },
    ...serviceFlags,
  },
  async run({ args, rawArgs }) {
    const [{ readRunSearch }, { runTable }, { valuesOf }] = await Promise.all([
      import("../workflows/read-run-search.ts"),
      import("../workflows/run-lines.ts"),
      import("../command-line.ts"),
    ]);
    const given = { ...args, param: valuesOf(rawArgs, "param"), output: valuesOf(rawArgs, "output") };
    const { search, limit } = readRunSearch(given);
    const answer = await (await serviceOf(args)).findRuns(search, limit);
    if (args.json) return printJson(answer);
    const { runs } = answer;
    if (runs.length === 0) return console.error("No runs found.");
    console.log(runTable(runs, { isOfAll: args.workflow === undefined }));
  },
});

export const gatesCommand = defineCommand({
  meta: { name: "gates", description: "List the gates that wait for a decision, those of the newest runs first" },
  args: {
    json: { type: "boolean", description: "Print a JSON array" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ gateLines }, service] = await Promise.all([import("../workflows/run-lines.ts"), serviceOf(args)]);
    const gates = await service.gates();
    if (args.json) return printJson(gates);
    if (gates.length === 0) return console.error("No gate waits for a decision.");
    console.log(gates.map((each) => gateLines(each, givenFlags(args))).join("\n\n"));
  },
});

export const showCommand = defineCommand({
  meta: { name: "show", description: "Show a run: its nodes, its outputs, and the gate at which it waits" },
  args: {
    ...runFlags,
    json: { type: "boolean", description: "Print a JSON object, with the inputs and outputs of each node" },
  },
  async run({ args }) {
    const [{ runPage }, service] = await Promise.all([import("../workflows/run-lines.ts"), serviceOf(args)]);
    const detail = await service.run({ runId: args.run, workflowId: args.workflow });
    if (args.json) return printJson(detail);
    console.log(runPage(detail, givenFlags(args)));
  },
});

export const recordCommand = defineCommand({
  meta: { name: "record", description: "Print a file of cases that repeats an ended run with the answers that its nodes got" },
  args: {
    ...runFlags,
    out: { type: "string", valueHint: "file", description: "Write the cases into this new file" },
  },
  async run({ args }) {
    const [{ recordCase }, { giveCaseFile }, { readSettings }] = await Promise.all([
      import("../workflows/test-definitions.ts"),
      import("../case-file-text.ts"),
      import("../read-settings.ts"),
    ]);
    const { settings } = await readSettings(args);
    const { definitionsDir } = settings.workflow;
    const run = { runId: args.run, workflowId: args.workflow };
    const text = await recordCase(await serviceOf(args), run, { definitionsDir, out: args.out });
    await giveCaseFile(text, args.out);
  },
});

interface ServiceFlags extends SettingsFlags {
  readonly url?: string | undefined;
}

/** The service that these flags select. */
export async function serviceOf(args: ServiceFlags) {
  const [{ readSettings }, { findService }] = await Promise.all([
    import("../read-settings.ts"),
    import("../workflows/running-service.ts"),
  ]);
  return findService((await readSettings(args)).settings, args.url);
}

async function follow(
  args: ServiceFlags & { readonly json?: boolean | undefined },
  run: { readonly runId: string; readonly workflowId?: string | undefined },
): Promise<void> {
  const { followToEnd } = await import("../workflows/follow-run.ts");
  const find = () => serviceOf(args);
  process.exitCode = await followToEnd({ find, run, asJson: args.json ?? false, more: givenFlags(args) });
}

/** The flags with which another command reaches the same service. */
function givenFlags(args: ServiceFlags): string[] {
  return (["config", "data-dir", "url"] as const).flatMap((name) => (args[name] === undefined ? [] : [`--${name}`, args[name]]));
}

export async function printJson(value: unknown): Promise<void> {
  const { printableJson } = await import("../terminal.ts");
  console.log(printableJson(value, 2));
}
