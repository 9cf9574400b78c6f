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

export const agentCommand = defineCommand({
  meta: { name: "agent", description: "Test agents" },
  subCommands: { test: testCommand },
});
