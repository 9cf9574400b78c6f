import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { ports } from "@portico/core";
import { agentSchedules } from "@portico/operator/agent-schedules";
import { startAgentService } from "../../harness/agent-app.ts";
import { createScriptedEngine } from "../../harness/scripted-agent.ts";

// Runs in its own process, which the test kills: an agent with schedules, whose model's provider is often away. It records each attempt by the run.
const [dataDir = "", happened = ""] = process.argv.slice(2);
const said = openSync(happened, "a");
const engine = createScriptedEngine();
engine.otherwise(async ({ caller: { runId } }, { say }) => {
  if (Math.random() < 0.4) {
    writeSync(said, `away ${runId}\n`);
    throw new ports.ModelUnreachable("The provider is away");
  }
  writeSync(said, `played ${runId}\n`);
  await sleep(Math.random() * 200);
  await say({ type: "text", delta: "Done" });
});
const everySecond = { everyMs: 1000, prompt: "Look" };
const { url } = await startAgentService({
  dataDir,
  engine,
  agents: new Map([
    [
      "helper",
      {
        name: "Helper",
        engine: "scripted",
        schedules: [
          { ...everySecond, name: "all", catchUp: 1000 },
          { ...everySecond, name: "spread", catchUp: 1000, jitterMs: 700 },
          { ...everySecond, name: "careful", overlap: "skip" },
        ],
      },
    ],
  ]),
  background: { concurrencyPerAgent: 16, backgroundRetries: Array.from({ length: 20 }, () => "1s") },
  adapters: [recordSchedules({ everyMs: 50 })],
  plugins: [agentSchedules({})],
});
process.send?.(url);
