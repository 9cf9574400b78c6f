/**
 * An existing engine for durable runs, in its own process. A run has a fixed number of steps without work; each step is stored
 * before the next begins. The packages are in a folder of the benchmark. A machine without the server that an engine needs skips
 * this contestant.
 */
import { once } from "node:events";
import { createServer as createHttp2Server } from "node:http2";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export type ContestantName = "dbos" | "bullmq" | "openworkflow" | "restate";

export type ContestantJob =
  | {
      readonly do: "open";
      readonly name: ContestantName;
      readonly packages: string;
      readonly dataDir: string;
      readonly steps: number;
    }
  | { readonly do: "finish"; readonly runs: number; readonly concurrency: number }
  | { readonly do: "close" };

export interface ContestantResult {
  readonly perSecond?: number;
  readonly p50?: number;
}

interface Contestant {
  /** Milliseconds from the start of a run to its end. */
  finish(): Promise<unknown>;
  close(): Promise<unknown>;
}

type Open = (
  load: (name: string) => Promise<any>,
  given: { readonly dataDir: string; readonly steps: number },
) => Promise<Contestant>;

const CONCURRENCY = 50;

const contestants: Readonly<Record<ContestantName, Open>> = {
  async dbos(load, { steps }) {
    const { DBOS } = await load("@dbos-inc/dbos-sdk");
    const run = DBOS.registerWorkflow(
      async (n: number) => {
        let sum = n;
        for (let step = 0; step < steps; step++) sum = await DBOS.runStep(async () => sum + 1, { name: `step${step}` });
        return sum;
      },
      { name: "steps" },
    );
    const systemDatabaseUrl = process.env["BENCH_POSTGRES_URL"] ?? "postgresql://postgres@127.0.0.1:5432/portico_bench_dbos";
    DBOS.setConfig({ name: "bench", systemDatabaseUrl, logLevel: "error", runAdminServer: false });
    await DBOS.launch();
    return { finish: async () => (await DBOS.startWorkflow(run)(1)).getResult(), close: () => DBOS.shutdown() };
  },
  async bullmq(load, { steps }) {
    const { Queue, QueueEvents, Worker } = await load("bullmq");
    const { default: Redis } = await load("ioredis");
    const connect = () => new Redis(process.env["BENCH_REDIS_URL"] ?? "redis://127.0.0.1:6379", { maxRetriesPerRequest: null });
    const connections = [connect(), connect(), connect()];
    const queue = new Queue("portico-bench", { connection: connections[0] });
    const events = new QueueEvents("portico-bench", { connection: connections[1] });
    const work = async (job: any) => {
      let { n } = job.data;
      for (let step = 0; step < steps; step++) await job.updateData({ n: ++n, step });
      return n;
    };
    const worker = new Worker("portico-bench", work, { connection: connections[2], concurrency: CONCURRENCY });
    await Promise.all([events.waitUntilReady(), worker.waitUntilReady()]);
    return {
      finish: async () => (await queue.add("steps", { n: 1 }, { removeOnComplete: true })).waitUntilFinished(events),
      async close() {
        await Promise.all([worker.close(), queue.close(), events.close()]);
        for (const connection of connections) connection.disconnect();
      },
    };
  },
  async restate(load, { steps }) {
    const { createEndpointHandler, service } = await load("@restatedev/restate-sdk");
    const run = async (context: any, n: number): Promise<number> => {
      let sum = n;
      for (let step = 0; step < steps; step++) sum = await context.run(`step${step}`, async () => sum + 1);
      return sum;
    };
    const server = createHttp2Server(createEndpointHandler({ services: [service({ name: "steps", handlers: { run } })] }));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const body = JSON.stringify({ uri });
    const post = async (url: string, text: string): Promise<unknown> => {
      const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: text });
      if (!answer.ok) throw new Error(`Restate answered with ${answer.status}`);
      return answer.json();
    };
    await post(`${process.env["BENCH_RESTATE_ADMIN"]}/deployments`, body);
    return {
      finish: () => post(`${process.env["BENCH_RESTATE_INGRESS"]}/steps/run`, "1"),
      close: async () => void server.close(),
    };
  },
  async openworkflow(load, { steps, dataDir }) {
    const { OpenWorkflow } = await load("openworkflow");
    const { BackendSqlite } = await load("openworkflow/sqlite");
    const backend = BackendSqlite.connect(join(dataDir, "openworkflow.sqlite"));
    const engine = new OpenWorkflow({ backend });
    const run = engine.defineWorkflow({ name: "steps" }, async ({ input, step }: any) => {
      let n = input.n;
      for (let at = 0; at < steps; at++) n = await step.run({ name: `step${at}` }, async () => n + 1);
      return n;
    });
    const worker = engine.newWorker({ concurrency: CONCURRENCY });
    await worker.start();
    return {
      finish: async () => (await run.run({ n: 1 })).result(),
      async close() {
        await worker.stop();
        await backend.stop();
      },
    };
  },
};

let contestant: Contestant | undefined;

process.on("message", async (job: ContestantJob) => {
  if (job.do === "open") {
    const require = createRequire(join(job.packages, "package.json"));
    const load = async (name: string) => {
      const found = await import(pathToFileURL(require.resolve(name)).href);
      return { ...found.default, ...found };
    };
    contestant = await contestants[job.name](load, job);
    return process.send?.({});
  }
  if (job.do === "close") {
    await contestant?.close();
    return process.send?.({});
  }
  const times: number[] = [];
  let left = job.runs;
  const begun = performance.now();
  const clients = Array.from({ length: job.concurrency }, async () => {
    while (left-- > 0) {
      const at = performance.now();
      await contestant!.finish();
      times.push(performance.now() - at);
    }
  });
  await Promise.all(clients);
  const perSecond = (job.runs * 1000) / (performance.now() - begun);
  times.sort((a, b) => a - b);
  process.send?.({ perSecond, p50: times[Math.floor(times.length / 2)] ?? Number.NaN } satisfies ContestantResult);
});
