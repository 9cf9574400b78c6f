/**
 * Measures what accepting webhook events costs: `npm run bench:webhook`, about a minute. The service is a separate process with its stores
 * in a folder: an accepted event is on the disk. Senders are in this process. A bare server with the minimum of a durable acceptance shows
 * how fast the machine is.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { TOKENS } from "../harness/agent-app.ts";
import { startWorker } from "./proxy/child.ts";
import type { ServerJob, ServerResult } from "./webhook/server.ts";

const ROUNDS = [
  { concurrency: 1, triggers: 3_000 },
  { concurrency: 32, triggers: 30_000 },
  { concurrency: 256, triggers: 30_000 },
];
const WARM_UP = 4_000;
const FINISHED = { concurrency: 32, triggers: 3_000 };
let sent = 0;
const PAYLOAD = { title: "Mend the door", repository: "portico/portico", sender: "ada", number: 7, labels: ["bug"] };

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);
console.log("accepted, the agent being at work on others | accepted/s | p50 ms | p99 ms | bare accepted/s | rate ÷ bare");
for (const { concurrency, triggers } of ROUNDS) {
  const own = await withServer("server", true, (send) => send({ concurrency, triggers }));
  const bare = await withServer("bare", true, (send) => send({ concurrency, triggers }));
  const cells = [own.perSecond.toFixed(0), own.p50.toFixed(2), own.p99.toFixed(2), bare.perSecond.toFixed(0)];
  console.log(
    `${triggers} at concurrency ${concurrency} | ${cells.join(" | ")} | ${(own.perSecond / bare.perSecond).toFixed(2)}`,
  );
}

console.log("\nfrom the first trigger to the end of the last run, the agent answering at once | runs/s");
await withServer("server", false, async (send, url) => {
  await send({ concurrency: FINISHED.concurrency, triggers: 300 });
  await finished(url, WARM_UP + 300);
  const begun = performance.now();
  await send(FINISHED);
  await finished(url, WARM_UP + 300 + FINISHED.triggers);
  const perSecond = (FINISHED.triggers * 1000) / (performance.now() - begun);
  console.log(`${FINISHED.triggers} at concurrency ${FINISHED.concurrency} | ${perSecond.toFixed(0)}`);
});

interface Round {
  readonly concurrency: number;
  readonly triggers: number;
}

interface Result {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

async function withServer<T>(
  kind: "server" | "bare",
  holds: boolean,
  use: (send: (round: Round) => Promise<Result>, url: string) => Promise<T>,
): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-webhook-"));
  const file = kind === "server" ? "webhook/server.ts" : "queries/bare.ts";
  const server = startWorker<ServerJob & { readonly upstream?: string }, ServerResult>(new URL(file, import.meta.url));
  const { url = "", secret = "" } = await server.run({ do: "open", dataDir, holds });
  const send = ({ concurrency, triggers }: Round) => sendAll(url, secret, { concurrency, triggers });
  try {
    await send({ concurrency: 32, triggers: WARM_UP });
    return await use(send, url);
  } finally {
    // Waiting events are not measured, so the server stops without them.
    await server.stop();
    rmSync(dataDir, { recursive: true });
  }
}

async function sendAll(url: string, secret: string, { concurrency, triggers }: Round): Promise<Result> {
  const pool = new Pool(url, { connections: concurrency });
  const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
  const times: number[] = [];
  let left = triggers;
  const begun = performance.now();
  const senders = Array.from({ length: concurrency }, async () => {
    while (left-- > 0) {
      // The bare server reads an id. For the trigger it is another field of the payload.
      const body = secret === "" ? bareBody() : JSON.stringify({ event: "work", payload: { ...PAYLOAD, number: sent++ } });
      const at = performance.now();
      const answer = await pool.request({ path: "/api/webhook/helper", method: "POST", headers, body });
      if (answer.statusCode >= 300)
        throw new Error(`A trigger was answered with ${answer.statusCode}: ${await answer.body.text()}`);
      await answer.body.dump();
      times.push(performance.now() - at);
    }
  });
  await Promise.all(senders);
  const perSecond = (triggers * 1000) / (performance.now() - begun);
  await pool.close();
  times.sort((a, b) => a - b);
  return { perSecond, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

/** As long as the body of a trigger. */
function bareBody(): string {
  return JSON.stringify({ clientRequestId: `event-${sent++}`, payload: PAYLOAD });
}

/** Resolves when this many runs exist and none executes. */
async function finished(url: string, runs: number): Promise<void> {
  const headers = { "x-agent-service-token": TOKENS.owner };
  for (;;) {
    const answer = await fetch(`${url}/api/runs?limit=${runs}`, { headers });
    const listed = ((await answer.json()) as { runs: readonly { status: string }[] }).runs;
    if (listed.length === runs && listed.every(({ status }) => status === "completed")) return;
    await sleep(50);
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
