/** The agent service of the benchmarks, in its own process, with stores in a folder, real HTTP and Socket.IO. */
import { chatHttp } from "@portico/adapters/models/chat-http";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { createScriptedEngine } from "../../harness/scripted-agent.ts";

export type ServerJob =
  | { readonly do: "open"; readonly dataDir: string; readonly upstream: string }
  /** Turns that wait for their model may continue. */
  | { readonly do: "release" }
  | { readonly do: "close" };

export interface ServerResult {
  readonly url?: string;
}

const engine = createScriptedEngine();
let gate = createGate();
engine.otherwise(async (_turn, { say }) => {
  await gate.opened;
  await say({ type: "text", delta: "done" });
});
engine.on("at once", async (_turn, { say }) => void (await say({ type: "text", delta: "done" })));
let service: Awaited<ReturnType<typeof startAgentService>> | undefined;

process.on("message", async (job: ServerJob) => {
  let result: ServerResult = {};
  switch (job.do) {
    case "open": {
      const { dataDir, upstream } = job;
      service = await startAgentService({
        dataDir,
        engine,
        agents: new Map([
          ["helper", { name: "Helper", engine: "scripted" }],
          ["streamer", { name: "Streamer", provider: "upstream", model: "clock" }],
        ]),
        telemetry: openTelemetry({ level: "silent", format: "json" }),
        adapters: [chatHttp({ id: "upstream", type: "bench", baseUrl: upstream, models: ["clock"] })],
      });
      result = { url: service.url };
      break;
    }
    case "release":
      gate.open();
      gate = createGate();
      break;
    case "close":
      gate.open();
      await service?.close();
      break;
  }
  process.send?.(result);
});
