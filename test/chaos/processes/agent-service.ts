import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgentService } from "../../harness/agent-app.ts";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";

// Runs in its own process, which the test kills: an agent service whose agent immediately records each prompt that it plays.
const [dataDir = "", happened = ""] = process.argv.slice(2);
const said = openSync(happened, "a");
const engine = createScriptedEngine();
engine.otherwise(async (turn, { say }) => {
  writeSync(said, `${promptOf(turn)}\n`);
  for (const delta of ["one ", "two ", "three"]) {
    await say({ type: "text", delta });
    await sleep(Math.random() * 8);
  }
});
const { url } = await startAgentService({ dataDir, engine });
process.send?.(url);
