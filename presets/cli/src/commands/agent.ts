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

export const agentCommand = defineCommand({
  meta: { name: "agent", description: "Test agents, and record their turns as tests" },
  subCommands: { test: testCommand, record: recordCommand },
});
