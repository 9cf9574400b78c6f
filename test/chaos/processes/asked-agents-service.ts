import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startAskedAgents } from "../../harness/asked-agents.ts";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";

// Runs in its own process, which the test kills: a service whose agent is a model, and immediately records each prompt that it plays.
const [dataDir = "", happened = ""] = process.argv.slice(2);
const played = openSync(happened, "a");
const engine = createScriptedEngine();
engine.otherwise(async (turn, { say }) => {
  writeSync(played, `${promptOf(turn)}\n`);
  await say({ type: "text", delta: "one " });
  await sleep(Math.random() * 20);
  await say({ type: "text", delta: "two" });
});
const { url, token } = await startAskedAgents({ dataDir, engine });
process.send?.({ proxy: url, token });
