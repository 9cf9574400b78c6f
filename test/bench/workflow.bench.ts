/**
 * Measures what workflows cost: `npm run bench:workflow`, about three minutes; with `-- --beside ../other-checkout` only finished runs of both
 * checkouts, in turns, half a minute; with `-- --loop` only how long expressions hold the event loop. The service is a separate process with its stores in a
 * folder: an accepted run is on the disk. Callers are in this process. Existing engines are installed into a folder of the benchmark and
 * measured, each with the server that it needs, if this machine has that server. A bare server with the minimum of a durable acceptance
 * shows how fast the machine is.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { Pool } from "undici";
import { SERVICE_TOKEN } from "../harness/workflow-app.ts";
import { startWorker } from "./proxy/child.ts";
import type { ContestantJob, ContestantName, ContestantResult } from "./workflow/contestant.ts";
import { installEngines } from "./workflow/install-engines.ts";
import type { ServerJob, ServerResult } from "./workflow/server.ts";

const TRIGGERS = [
  { concurrency: 1, triggers: 3_000 },
  { concurrency: 32, triggers: 30_000 },
];
const FOLLOWED = 1_000;
const FINISHED = { runs: 20_000, concurrency: 50 };
const FIVE_NODES = [
  ["five", "portico, transform nodes (computed again after a crash)"],
  ["steps", "portico, nodes that are remembered one by one"],
] as const;
const COSTLY = [
  ["costly", "1,000 of one node"],
  ["costly-map", "320 items of a map, 64 at a time"],
  ["trivial-map", "5,000 items of a map with one step each"],
] as const;
const CONTESTANTS: readonly { name: ContestantName; on: string; runs: number }[] = [
  { name: "bullmq", on: "Redis", runs: 4_000 },
  { name: "dbos", on: "PostgreSQL", runs: 1_500 },
  { name: "openworkflow", on: "SQLite", runs: 500 },
];
const OWN = resolve(import.meta.dirname, "../..");
const headers = { "content-type": "application/json", "x-workflow-service-token": SERVICE_TOKEN };

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);

const { values: flags } = parseArgs({ options: { beside: { type: "string" }, loop: { type: "boolean" } } });
if (flags.beside !== undefined) {
  await compare(resolve(flags.beside));
  process.exit();
}
if (flags.loop) {
  await watch();
  process.exit();
}

console.log("triggers, the service being at work on others | accepted/s | p50 ms | p99 ms | bare accepted/s | rate ÷ bare");
for (const round of TRIGGERS) {
  const own = await withServer("server", (url) => sendAll(url, "/api/workflow/webhook?id=hold", round));
  const bare = await withServer("bare", (url) => sendAll(url, "/api/workflow/webhook?id=hold", round));
  const cells = [own.perSecond.toFixed(0), own.p50.toFixed(2), own.p99.toFixed(2), bare.perSecond.toFixed(0)];
  console.log(
    `${round.triggers} at concurrency ${round.concurrency} | ${cells.join(" | ")} | ${(own.perSecond / bare.perSecond).toFixed(2)}`,
  );
}

console.log("\na run of three nodes, one at a time, over HTTP | p50 ms | p99 ms");
await withServer("server", async (url) => {
  await follow(url, 200);
  const { first, done } = await follow(url, FOLLOWED);
  console.log(`from the trigger to the first event | ${quantile(first, 0.5).toFixed(2)} | ${quantile(first, 0.99).toFixed(2)}`);
  console.log(`from the trigger to workflow:complete | ${quantile(done, 0.5).toFixed(2)} | ${quantile(done, 0.99).toFixed(2)}`);
});

console.log(`\nfinished runs of five nodes, ${FINISHED.concurrency} at a time | runs/s | p50 ms | CPU µs/run`);
for (const [workflowId, what] of FIVE_NODES) {
  const { perSecond = 0, p50 = 0, cpuMicroseconds = 0 } = await finish(workflowId, FINISHED);
  console.log(`${what} | ${perSecond.toFixed(0)} | ${p50.toFixed(2)} | ${cpuMicroseconds.toFixed(0)}`);
}
// Warnings of other engines are not part of the report.
process.env["NODE_NO_WARNINGS"] = "1";
const packages = installEngines("@dbos-inc/dbos-sdk@5.3.0", "bullmq@6.7.0", "ioredis@5", "openworkflow@0.10.1");
for (const { name, on, runs } of CONTESTANTS) {
  try {
    const { perSecond = 0, p50 = 0 } = await measureContestant(name, packages, runs);
    console.log(`${name} on ${on}, five steps | ${perSecond.toFixed(0)} | ${p50.toFixed(2)} |`);
  } catch (error) {
    console.log(`${name} on ${on} | not measured: ${error instanceof Error ? error.message : String(error)}`);
  }
}
rmSync(packages, { recursive: true });

/** How long runs with many expressions hold the event loop, the first time and when the code is compiled. */
async function watch(): Promise<void> {
  console.log("expressions of 8,190 steps | the event loop was held for at most, ms | the run took, ms");
  for (const [workflowId, what] of COSTLY) {
    await withServer("server", async (_url, run) => {
      for (let round = 0; round < 3; round++) {
        const { heldMs = 0, totalMs = 0 } = await run({ do: "watch", workflowId });
        console.log(`${what} | ${heldMs.toFixed(0)} | ${totalMs.toFixed(0)}`);
      }
    });
  }
}

/** Finished runs of this checkout and of another, in turns. */
async function compare(other: string): Promise<void> {
  const runs = { runs: FINISHED.runs / 2, concurrency: FINISHED.concurrency };
  console.log(`finished runs of five nodes, ${runs.concurrency} at a time | checkout | runs/s | CPU µs/run`);
  for (const [workflowId, what] of FIVE_NODES) {
    for (let round = 0; round < 3; round++) {
      for (const [name, checkout] of [
        ["this", OWN],
        ["other", other],
      ] as const) {
        const { perSecond = 0, cpuMicroseconds = 0 } = await finish(workflowId, runs, checkout);
        console.log(`${what} | ${name} | ${perSecond.toFixed(0)} | ${cpuMicroseconds.toFixed(0)}`);
      }
    }
  }
}

function finish(workflowId: string, jobs: typeof FINISHED, checkout = OWN): Promise<ServerResult> {
  return withServer(
    "server",
    async (_url, run) => {
      await run({ do: "finish", workflowId, runs: 4_000, concurrency: jobs.concurrency });
      return run({ do: "finish", workflowId, ...jobs });
    },
    checkout,
  );
}

async function withServer<T>(
  kind: "server" | "bare",
  use: (url: string, run: (job: ServerJob) => Promise<ServerResult>) => Promise<T>,
  checkout = OWN,
): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-workflow-"));
  const file = kind === "server" ? "workflow/server.ts" : "queries/bare.ts";
  const server = startWorker<ServerJob, ServerResult>(pathToFileURL(join(checkout, "test/bench", file)));
  try {
    const { url = "" } = await server.run({ do: "open", dataDir });
    return await use(url, (job) => server.run(job));
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true });
  }
}

async function sendAll(url: string, path: string, { concurrency, triggers }: { concurrency: number; triggers: number }) {
  const pool = new Pool(url, { connections: concurrency });
  const times: number[] = [];
  let sent = 0;
  const send = async (until: number, took: number[]) => {
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        while (sent < until) {
          // The bare server reads an id. For the trigger it is another parameter.
          const body = JSON.stringify({ n: sent, clientRequestId: `run-${sent++}` });
          const at = performance.now();
          const answer = await pool.request({ path, method: "POST", headers, body });
          if (answer.statusCode >= 300)
            throw new Error(`A trigger was answered with ${answer.statusCode}: ${await answer.body.text()}`);
          await answer.body.dump();
          took.push(performance.now() - at);
        }
      }),
    );
  };
  const warmUp = Math.min(triggers, 4_000);
  await send(warmUp, []);
  const begun = performance.now();
  await send(warmUp + triggers, times);
  const perSecond = (triggers * 1000) / (performance.now() - begun);
  await pool.close();
  times.sort((a, b) => a - b);
  return { perSecond, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

/** Trigger, subscribe, and read to the end, one run at a time. */
async function follow(url: string, runs: number) {
  const [first, done]: [number[], number[]] = [[], []];
  for (let n = 0; n < runs; n++) {
    const at = performance.now();
    const triggered = await fetch(`${url}/api/workflow/webhook?id=three`, {
      method: "POST",
      headers,
      body: JSON.stringify({ n }),
    });
    const { runId } = (await triggered.json()) as { runId: string };
    const events = await fetch(`${url}/api/workflow/events?runId=${runId}`, { headers });
    const stream = events.body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    let isFirst = true;
    for await (const { event } of stream) {
      if (isFirst) first.push(performance.now() - at);
      isFirst = false;
      if (event === "workflow:complete") done.push(performance.now() - at);
    }
  }
  return { first: first.sort((a, b) => a - b), done: done.sort((a, b) => a - b) };
}

async function measureContestant(name: ContestantName, packages: string, runs: number): Promise<ContestantResult> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-workflow-"));
  const worker = startWorker<ContestantJob, ContestantResult>(new URL("workflow/contestant.ts", import.meta.url));
  try {
    await worker.run({ do: "open", name, packages, dataDir, steps: 5 });
    await worker.run({ do: "finish", runs: Math.ceil(runs / 10), concurrency: FINISHED.concurrency });
    return await worker.run({ do: "finish", runs, concurrency: FINISHED.concurrency });
  } finally {
    await worker.stop();
    rmSync(dataDir, { recursive: true });
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
