/** An agent service as one process of a cluster. Its agent outputs the time, piece by piece. */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { redisBus } from "@portico/cluster/bus/redis";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { postgresLog } from "@portico/cluster/log/postgres";
import { redisPresence } from "@portico/cluster/presence/redis";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { Secret } from "@portico/core";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { withOwnSigning } from "../../harness/members.ts";
import { createScriptedEngine } from "../../harness/scripted-agent.ts";
import type { EnginePlace } from "./engine-process.ts";

export type AgentJob =
  | ({ readonly do: "open" } & EnginePlace)
  /** The number of pieces that each turn outputs from now on, and the pause between two pieces. */
  | { readonly do: "pace"; readonly pieces: number; readonly gapMs: number }
  | { readonly do: "memory" }
  | { readonly do: "close" };

export interface AgentAnswer {
  readonly url?: string;
  /** Bytes in use after a garbage collection, on the heap and beside it. */
  readonly used?: number;
  readonly resident?: number;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
let service: AgentService | undefined;
let pace = { pieces: 1, gapMs: 0 };

const engine = createScriptedEngine();
engine.otherwise(async (_turn, { say }) => {
  const { pieces, gapMs } = pace;
  for (let piece = 0; piece < pieces; piece++) {
    await sleep(gapMs);
    await say({ type: "text", delta: `${process.hrtime.bigint()} ` });
  }
});

async function open({ postgresUrl, redisUrl, name, leaseMs, executes }: EnginePlace): Promise<AgentAnswer> {
  const { url } = (service = await startAgentService({
    engine,
    telemetry: openTelemetry({ level: "silent", format: "json" }),
    shared: [
      postgresRecords({ url: postgresUrl, schema: name }),
      postgresLog({}),
      bullmqEngine({ leaseMs, executes }),
      recordSecrets({ key: new Secret(Buffer.alloc(32, 7).toString("base64url")) }),
      ioredisServer({ url: redisUrl, prefix: name }),
      withOwnSigning(redisBus()),
      withOwnSigning(redisPresence({})),
    ],
  }));
  return { url };
}

async function measureMemory(): Promise<AgentAnswer> {
  for (let turn = 0; turn < 5; turn++) {
    collect();
    await sleep(50);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { used: heapUsed + external, resident: rss };
}

async function answer(job: AgentJob): Promise<AgentAnswer> {
  if (job.do === "open") return open(job);
  if (job.do === "memory") return measureMemory();
  if (job.do === "pace") pace = job;
  else await service?.close();
  return {};
}

process.on("message", async (job: AgentJob) => process.send?.(await answer(job)));
