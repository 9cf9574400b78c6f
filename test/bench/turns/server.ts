/** The agent service of one checkout for `turns.bench.ts`, in a process of its own: stores in a folder, real HTTP and Socket.IO. */
import { setTimeout as sleep } from "node:timers/promises";
import type * as AgentApp from "../../harness/agent-app.ts";
import type * as Scripted from "../../harness/scripted-agent.ts";
import type * as Core from "../../../core/src/index.ts";
import type * as SqliteStore from "../../../adapters/src/records/sqlite/store.ts";
import type * as Telemetry from "../../../adapters/src/telemetry/opentelemetry.ts";

export type TurnsJob =
  | { readonly do: "open"; readonly dataDir: string; readonly checkout: string }
  /** Executes background turns, at most `concurrency` at a time, and answers when all have ended. */
  | { readonly do: "background"; readonly turns: number; readonly concurrency: number }
  | { readonly do: "count" };

export interface TurnsResult {
  readonly url?: string;
  /** Commits of the store since it was opened. */
  readonly commits?: number;
}

let service: AgentApp.AgentService | undefined;
let core: typeof Core;
let stores: typeof SqliteStore;

process.on("message", async (job: TurnsJob) => {
  process.send!(await perform(job));
});

async function perform(job: TurnsJob): Promise<TurnsResult> {
  switch (job.do) {
    case "open":
      return { url: await open(job.checkout, job.dataDir) };
    case "background":
      await background(job.turns, job.concurrency);
      return {};
    case "count":
      return { commits: stores.sqliteStoreOf(service!.app.port(core.ports.records))!.transaction() };
  }
}

async function open(checkout: string, dataDir: string): Promise<string> {
  const load = <T>(path: string): Promise<T> => import(new URL(path, checkout).href);
  const { startAgentService } = await load<typeof AgentApp>("test/harness/agent-app.ts");
  const { createScriptedEngine } = await load<typeof Scripted>("test/harness/scripted-agent.ts");
  const { openTelemetry } = await load<typeof Telemetry>("adapters/src/telemetry/opentelemetry.ts");
  core = await load("core/src/index.ts");
  stores = await load("adapters/src/records/sqlite/store.ts");
  const engine = createScriptedEngine();
  // As an agent with a model, but one that answers at once.
  engine.otherwise(async (_turn, { step, say, steering }) => {
    await steering?.();
    await step("model-1", async () => ({ text: "done" }), { repeatable: true });
    await say({ type: "text", delta: "done" });
    await steering?.();
  });
  service = await startAgentService({ dataDir, engine, telemetry: openTelemetry({ level: "silent", format: "json" }) });
  return service.url;
}

async function background(turns: number, concurrency: number): Promise<void> {
  const port = service!.app.port(core.ports.backgroundTurns);
  const engine = service!.app.port(core.ports.engine);
  let left = turns;
  const one = async (agentId: string) => {
    while (left-- > 0) {
      const turn = { agentId, userId: "owner", prompt: "go", maxTurns: 5, origin: { origin: "bench", displayName: "Bench" } };
      const { runId } = await port.start(turn);
      const workId = runId.replace(/^run_/, "turn_");
      while ((await engine.status(workId))?.endedAt === undefined) await sleep(2);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, at) => one(at % 2 ? "helper" : "second")));
}
