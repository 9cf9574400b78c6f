import { existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";
import { startWebhookService } from "../../harness/webhook-app.ts";

// Runs in its own process, which the test kills: a service with webhooks whose agent immediately records each prompt that it plays. With
// `demo` instead of a file, the agent uses the offline model.
const [dataDir = "", happened = "demo"] = process.argv.slice(2);
const engine = createScriptedEngine();
const isDemo = happened === "demo";
if (!isDemo) {
  const said = openSync(happened, "a");
  engine.otherwise(async (turn, { callTool, say, signal }) => {
    writeSync(said, `${promptOf(turn)}\n`);
    await say({ type: "text", delta: "one " });
    await sleep(Math.random() * 8);
    await callTool({ toolId: "SendUserMessage", arguments: { text: promptOf(turn) } }, signal);
    await say({ type: "text", delta: "two" });
  });
}
// Files that people and earlier lives wrote are kept.
const isNew = !existsSync(join(dataDir, "agents"));
const { url } = await startWebhookService({
  dataDir,
  engine,
  files: isNew ? { helper: { name: "Helper", engine: isDemo ? "loop" : "scripted" } } : {},
  background: isDemo ? {} : { concurrencyPerAgent: 16 },
});
process.on("message", () => {
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
process.send?.(url);
