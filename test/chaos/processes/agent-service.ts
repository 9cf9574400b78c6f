import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgentService } from "../../harness/agent-app.ts";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";

// A process of its own, meant to be killed: an agent service whose agent writes down each prompt that it plays, right then.
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
