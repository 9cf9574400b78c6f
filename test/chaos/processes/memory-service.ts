import { startAgentService } from "../../harness/agent-app.ts";
import { createScriptedEngine, promptOf } from "../../harness/scripted-agent.ts";

// Runs in its own process, which the test kills: an agent service whose agent adds each prompt to a document that it remembers, and tells the test
// when the tool has answered.
const [dataDir = ""] = process.argv.slice(2);
const engine = createScriptedEngine();
engine.otherwise(async (turn, { callTool, signal }) => {
  const word = promptOf(turn);
  const call = async (toolId: string, args: object) => {
    const { content, isError } = await callTool({ toolId, arguments: { name: "journal", ...args } }, signal);
    const [part] = content;
    return { isError, text: part?.type === "text" ? part.text : "" };
  };
  for (;;) {
    const before = await call("ReadMemory", {});
    const version = /^Version: (\S+)\nbegin/.exec(before.text)?.[1];
    const change = version === undefined ? { text: `begin\n${word}` } : { version, replaces: "begin", text: `begin\n${word}` };
    // Another turn may have written in between.
    if (!(await call("WriteMemory", change)).isError) break;
  }
  process.send?.({ saved: word });
});
const keeper = { name: "Keeper", engine: "scripted", memory: true };
const { url } = await startAgentService({ dataDir, engine, agents: new Map([["keeper", keeper]]) });
process.send?.({ url });
