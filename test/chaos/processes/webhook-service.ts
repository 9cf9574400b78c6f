import { existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";
import { startWebhookService } from "../../harness/webhook-app.ts";

// A process of its own, meant to be killed: a service with webhooks whose agent writes down each prompt that it plays, right then. With
// `demo` for a file, the agent is the offline model's.
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
// What people and earlier lives wrote stays.
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
