import { defineAdapter, ports } from "@portico/core";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgentService } from "../../harness/agent-app.ts";

// Runs in its own process, which the test kills: an agent service whose agent takes what its user says between its steps.
const [dataDir = ""] = process.argv.slice(2);
const steered = defineAdapter({
  name: "agent-engines/steered",
  port: ports.agentEngines,
  needs: {},
  open: (): ports.AgentEngine => ({
    id: "steered",
    canSteer: true,
    async run(_turn, { say, steering }) {
      const messages: ports.ConversationMessage[] = [];
      for (let step = 1; step <= 6; step++) {
        const text = `step ${step}`;
        await say({ type: "text", delta: text });
        messages.push({ role: "assistant", parts: [{ type: "text", text }] });
        await sleep(Math.random() * 8);
        for (const parts of await steering!()) messages.push({ role: "user", parts });
      }
      return { output: "done", messages, toolCalls: [], end: "completed" };
    },
  }),
});
const agents = new Map([["helper", { name: "Helper", engine: "steered" }]]);
const { url } = await startAgentService({ dataDir, agents, adapters: [steered()] });
process.send?.(url);
