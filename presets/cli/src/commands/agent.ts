import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const testCommand = defineCommand({
  meta: {
    name: "test",
    description: "Run cases of agents in memory, with the answers that the cases give to models and tools",
  },
  args: {
    files: { type: "positional", required: true, valueHint: "file…", description: "Files of cases in YAML or JSON" },
    json: { type: "boolean", description: "Print a JSON array" },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ testAgents }, { printResults }] = await Promise.all([
      import("../agents/test-agents.ts"),
      import("../case-lines.ts"),
    ]);
    await printResults(await testAgents(args, args._), args.json);
  },
});

const recordCommand = defineCommand({
  meta: {
    name: "record",
    description: "Print a file of cases that repeats the turns of a run with the answers of its models and tools",
  },
  args: {
    run: { type: "positional", required: true, valueHint: "run id", description: "Id of the run" },
    out: { type: "string", valueHint: "file", description: "Write the cases into this new file" },
    url: {
      type: "string",
      valueHint: "url",
      description: "Address of the agent service; default: the service that uses the data directory",
    },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ recordTurns }, { giveCaseFile }, { readSettings }] = await Promise.all([
      import("../agents/record-turns.ts"),
      import("../case-file-text.ts"),
      import("../read-settings.ts"),
    ]);
    const { settings } = await readSettings(args);
    await giveCaseFile(await recordTurns(settings, args.run, args.url), args.out);
  },
});

const evalCommand = defineCommand({
  meta: {
    name: "eval",
    description: "Run cases of agents with several models, and compare the results; tools give the answers of the cases",
  },
  args: {
    files: { type: "positional", required: true, valueHint: "file…", description: "Files of cases in YAML or JSON" },
    models: {
      type: "string",
      required: true,
      valueHint: "model,…",
      description:
        "Models with commas between them: provider/model, or a model that one provider lists; scripted: the answers of the cases",
    },
    judge: {
      type: "string",
      valueHint: "model",
      description: "Model that judges the criteria of the cases; default: they are not judged",
    },
    repeat: { type: "string", valueHint: "number", description: "How often each case is run with each model; default: 1" },
    parallel: { type: "string", valueHint: "number", description: "Maximum cases at the same time; default: 4" },
    "pass-rate": {
      type: "string",
      valueHint: "percent",
      description: "Exit with code 1 if fewer attempts passed with one of the models; default: 100",
    },
    json: { type: "boolean", description: "Print a JSON object, with each attempt" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { evalAgents } = await import("../agents/eval-agents.ts");
    process.exitCode = await evalAgents(args, { ...args, files: args._ });
  },
});

export const agentCommand = defineCommand({
  meta: { name: "agent", description: "Test agents, record their turns as tests, and compare models" },
  subCommands: { test: testCommand, record: recordCommand, eval: evalCommand },
});
