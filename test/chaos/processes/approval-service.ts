import { openSync, writeSync } from "node:fs";
import { functionTools } from "@portico/adapters/tools/functions";
import { ports } from "@portico/core";
import { startAgentService } from "../../harness/agent-app.ts";
import { toolOf, upstreamProviders } from "../../harness/looped-agents.ts";

// Runs in its own process, which the test kills: an agent service whose tool needs an approval, and records its effects immediately.
// Background turns begin when the test sends their keys.
const [dataDir = "", happened = "", upstream = ""] = process.argv.slice(2);
const effects = openSync(happened, "a");

const tools = functionTools({
  tools: [
    {
      ...toolOf("act", { requiresConfirmation: true, riskLevel: "high", idempotent: true }),
      inputSchema: { type: "object", properties: { of: { type: "string" } }, required: ["of"] },
      async run(args) {
        const { of } = args as { readonly of: string };
        writeSync(effects, `${of}\n`);
        return `did ${of}`;
      },
    },
  ],
});
const toolPolicy = { background: { riskLevels: { high: "ask" } } };
const helper = { name: "Helper", provider: "messages", model: "echo-large", tools: ["act"], toolPolicy };
const service = await startAgentService({
  ...{ dataDir, agents: new Map([["helper", helper]]), adapters: [tools, ...upstreamProviders(upstream)] },
  // Short, so that turns are parked and are not.
  durable: { parkAfterMs: 50 },
});
const turns = service.app.port(ports.backgroundTurns);
process.on("message", async (key: string) => {
  const origin = { origin: "webhook", displayName: "event" } as const;
  const { runId } = await turns.start({ agentId: "helper", userId: "owner", prompt: key, maxTurns: 9, origin, key });
  process.send?.({ key, runId });
});
process.send?.(service.url);
