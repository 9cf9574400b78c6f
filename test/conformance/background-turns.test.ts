import { join } from "node:path";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { memoryBackgroundTurns } from "@portico/adapters/background-turns/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { randomIds } from "@portico/adapters/ids/random";
import { memoryLog } from "@portico/adapters/log/memory";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { demo } from "@portico/adapters/models/demo";
import { loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { Adapter } from "@portico/core";
import { agentRuntime } from "@portico/plugins/conversations-runs/agent-runtime";
import { backgroundTurns } from "@portico/plugins/conversations-runs/background-turns";
import { afterAll } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { createScriptedEngine, promptOf } from "../harness/scripted-agent.ts";
import { backgroundTurnsConformance } from "./background-turns.ts";

backgroundTurnsConformance("memory", () => ({
  adapter: memoryBackgroundTurns({
    play({ prompt, workflowDepth }, deliver, signal) {
      if (prompt === "fail") throw new Error("This turn fails");
      if (prompt === "wait") return untilAborted(signal);
      deliver({ delivery: { message: prompt === "depth" ? `${workflowDepth}` : prompt, attachments: [] } });
      return prompt;
    },
  }),
  others: [
    systemClock(),
    randomIds(),
    memoryEngine({}),
    memoryRecords(),
    memoryTelemetry({ telemetry: createMemoryTelemetry() }),
  ],
}));

const folders: ReturnType<typeof temporaryFolder>[] = [];
afterAll(() => folders.forEach((folder) => folder.remove()));

function newFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder.path;
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

const agent = { name: "Helper", engine: "scripted" };

for (const [name, stores] of Object.entries<() => Adapter[]>({
  "agent runtime, in memory": () => [memoryRecords(), memoryLog(undefined), memoryEngine({})],
  "agent runtime, on SQLite": () => [
    sqliteRecords({ path: join(newFolder(), "records.sqlite") }),
    sqliteLog({}),
    embeddedEngine({}),
  ],
})) {
  backgroundTurnsConformance(name, () => {
    const engine = createScriptedEngine();
    engine.otherwise(async (turn, { callTool, signal, say }) => {
      if (promptOf(turn) === "fail") throw new Error("This turn fails");
      if (promptOf(turn) === "wait") return untilAborted(signal);
      await say({ type: "text", delta: promptOf(turn) });
      const text = promptOf(turn) === "depth" ? `${turn.caller.workflowDepth}` : promptOf(turn);
      await callTool({ toolId: "SendUserMessage", arguments: { text } }, signal);
    });
    return {
      adapter: backgroundTurns({}),
      others: [
        ...stores(),
        ...[
          agentRuntime({}),
          engine.adapter,
          demo({}),
          systemClock(),
          randomIds(),
          memorySecrets(),
          tokenIdentity({ tokens: [] }),
        ],
        memoryAgents({ agents: new Map(["helper", "second"].map((id) => [id, agent])) }),
        loopbackRealtime({}),
        memoryTelemetry({ telemetry: createMemoryTelemetry() }),
      ],
    };
  });
}
