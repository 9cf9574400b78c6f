import { openSync, writeSync } from "node:fs";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { functionTools } from "@portico/adapters/tools/functions";
import { recordUsage } from "@portico/adapters/usage/records";
import { ports } from "@portico/core";
import { agentSchedules } from "@portico/operator/agent-schedules";
import { usagePage } from "@portico/operator/usage";
import { startAgentService } from "../../harness/agent-app.ts";
import { toolOf, upstreamProviders } from "../../harness/looped-agents.ts";

// Runs in its own process, which the test kills: an agent whose tool needs an approval, one with a schedule, and one with a limit, whose model's
// provider is often away. The tool records its effects immediately. Background turns begin when the test sends their keys.
const [dataDir = "", happened = "", upstream = "", tokensPerDay = ""] = process.argv.slice(2);
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
const model = { provider: "messages", model: "echo-large" };
const service = await startAgentService({
  dataDir,
  agents: new Map<string, object>([
    ["helper", { ...model, name: "Helper", tools: ["act"], toolPolicy: { background: { riskLevels: { high: "ask" } } } }],
    [
      "planner",
      {
        ...model,
        name: "Planner",
        schedules: [{ name: "watch", everyMs: 1000, prompt: "watch", catchUp: 1000, overlap: "allow" }],
      },
    ],
    ["limited", { ...model, name: "Limited", limits: { tokensPerDay: Number(tokensPerDay) } }],
  ]),
  adapters: [tools, ...upstreamProviders(upstream), recordSchedules({ everyMs: 50 }), recordUsage({})],
  plugins: [agentSchedules({}), usagePage({})],
  // Short, so that turns are parked and are not.
  durable: { parkAfterMs: 50 },
  background: { concurrencyPerAgent: 16, backgroundRetries: Array.from({ length: 20 }, () => "1s") },
});
const turns = service.app.port(ports.backgroundTurns);
process.on("message", async (key: string) => {
  const origin = { origin: "webhook", displayName: "event" } as const;
  const { runId } = await turns.start({ agentId: "helper", userId: "owner", prompt: key, maxTurns: 9, origin, key });
  process.send?.({ key, runId });
});
process.send?.(service.url);
