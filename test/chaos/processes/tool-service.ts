import { openSync, writeSync } from "node:fs";
import { createManualClock } from "@portico/adapters/clock/manual";
import { functionTools } from "@portico/adapters/tools/functions";
import { startAgentService } from "../../harness/agent-app.ts";
import { toolOf, upstreamProviders } from "../../harness/looped-agents.ts";

// Runs in its own process, which the test kills: an agent service whose tool immediately records its effects, and dies where the test says.
const [dataDir = "", happened = "", upstream = ""] = process.argv.slice(2);
const effects = openSync(happened, "a");
const die = () => process.kill(process.pid, "SIGKILL");

const tools = functionTools({
  tools: [
    {
      ...toolOf("act"),
      inputSchema: { type: "object" },
      async run(args) {
        const { of, dies } = args as { readonly of: string; readonly dies?: "before" | "after" };
        if (dies === "before") die();
        writeSync(effects, `${of}\n`);
        if (dies === "after") die();
        return `did ${of}`;
      },
    },
  ],
});
const agents = new Map([["helper", { name: "Helper", provider: "messages", model: "echo-large", tools: ["act"] }]]);
// Time does not advance, so no timer causes a write.
const clock = createManualClock();
const { url } = await startAgentService({ dataDir, agents, clock, adapters: [tools, ...upstreamProviders(upstream)] });
process.send?.(url);
