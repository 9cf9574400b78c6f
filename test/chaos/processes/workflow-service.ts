import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { functionTools } from "@portico/adapters/tools/functions";
import { codeNode } from "@portico/workflow-nodes/code";
import { httpNode } from "@portico/workflow-nodes/http";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";
import { startWorkflowService } from "../../harness/workflow-app.ts";

// Runs in its own process, which the test kills: a workflow service with every kind of node. The actions of its tool and its agent are
// immediately recorded in a file.
const [dataDir = "", happened = "", effects = "", effectMs = "5"] = process.argv.slice(2);
const file = openSync(happened, "a");
const engine = createScriptedEngine();
engine.otherwise(async (turn, { say }) => {
  writeSync(file, `agent ${promptOf(turn)}\n`);
  await sleep(Math.random() * Number(effectMs));
  await say({ type: "text", delta: `said ${promptOf(turn)}` });
});
const mark = functionTools({
  tools: [
    {
      name: "mark",
      description: "Writes a line",
      inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      riskLevel: "low",
      requiresConfirmation: false,
      async run(args) {
        writeSync(file, `tool ${(args as { text: string }).text}\n`);
        await sleep(Math.random() * Number(effectMs));
        return "marked";
      },
    },
  ],
});
const { url } = await startWorkflowService({
  dataDir,
  // Every gate and every waiting run is parked at once, because the test is about coming back.
  engine: { parkAfterMs: 5 },
  adapters: [modelNode(), toolNode(), codeNode({}), httpNode({ allow: [new URL(effects).host] })],
  agents: { engine, adapters: [mark], background: { concurrencyPerAgent: 16 } },
  runtime: { files: { maxBytes: 2 ** 30, maxRunBytes: 2 ** 30 } },
});
process.on("message", (asked) => {
  globalThis.gc?.();
  // `maxRSS` is in KiB.
  process.send?.(asked === "most" ? process.resourceUsage().maxRSS * 1024 : process.memoryUsage().heapUsed);
});
process.send?.(url);
