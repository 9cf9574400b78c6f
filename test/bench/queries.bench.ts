/**
 * Measures what submitting and watching queries costs: `npm run bench:queries`, about a minute and a half. The service is a separate
 * process with its stores in a folder: an accepted query is on the disk. Clients and the upstream are in this process.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { io, type Socket } from "socket.io-client";
import { Pool } from "undici";
import { startBody, TOKENS } from "../harness/agent-app.ts";
import { startWorker } from "./proxy/child.ts";
import type { ServerJob, ServerResult } from "./queries/server.ts";

const ADMISSION = [
  { concurrency: 1, queries: 2_000 },
  { concurrency: 32, queries: 30_000 },
  { concurrency: 256, queries: 20_000 },
];
const FINISHED = { concurrency: 32, queries: 4_000 };
const LATENCY = [
  { sockets: 1, chunks: 5_000 },
  { sockets: 100, chunks: 40 },
  { sockets: 1_000, chunks: 15 },
];
/** Chunks per second over all streams. The service is busy, but not overloaded. */
const CHUNKS_PER_SECOND = 1_000;
const HEADERS = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

process.setMaxListeners(0);
const streams = new Set<ServerResponse>();
const upstream = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  streams.add(response);
}).listen(0, "127.0.0.1");
await once(upstream, "listening");

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);
console.log("admission, its turns waiting for their model | accepted/s | p50 ms | p99 ms | bare accepted/s | rate ÷ bare");
for (const { concurrency, queries } of ADMISSION) {
  const rates: number[] = [];
  for (const kind of ["server", "bare"] as const) {
    await withService(async ({ url, socket }) => {
      await submit(url, socket, "waits", { concurrency, queries: Math.min(queries, 3000) });
      const { perSecond, p50, p99 } = await submit(url, socket, "waits", { concurrency, queries });
      rates.push(perSecond);
      const times = `${p50.toFixed(2)} | ${p99.toFixed(2)}`;
      if (kind === "server")
        process.stdout.write(`${queries} at concurrency ${concurrency} | ${perSecond.toFixed(0)} | ${times}`);
    }, kind);
  }
  console.log(` | ${rates[1]!.toFixed(0)} | ${(rates[0]! / rates[1]!).toFixed(2)}`);
}

console.log("\nfrom the submission to query:complete, its agent answering at once | finished/s | p50 ms | p99 ms");
await withService(async ({ url, socket }) => {
  const ended = new Map<string, (value: unknown) => void>();
  socket!.on("query:complete", ({ clientRequestId }: { clientRequestId: string }) => ended.get(clientRequestId)?.(undefined));
  const until = (id: string) => new Promise((resolve) => ended.set(id, resolve));
  await submit(url, socket, "at once", { concurrency: FINISHED.concurrency, queries: 300, until });
  const { perSecond, p50, p99 } = await submit(url, socket, "at once", { ...FINISHED, until });
  console.log(
    `${FINISHED.queries} at concurrency ${FINISHED.concurrency} | ${perSecond.toFixed(0)} | ${p50.toFixed(2)} | ${p99.toFixed(2)}`,
  );
});

console.log("\nfrom the upstream's chunk to the client's event | chunks/s | p50 ms | p99 ms");
for (const { sockets, chunks } of LATENCY) {
  await withService(async ({ url }) => {
    const clients = await Promise.all(Array.from({ length: sockets }, () => connect(url)));
    const times: number[] = [];
    for (const client of clients) {
      client.on("query:message", ({ message: { delta } }: { message: { delta: string } }) =>
        times.push((Number(process.hrtime.bigint()) - Number(delta)) / 1e6),
      );
    }
    for (const client of clients) await start(url, client, "stream", "streamer");
    while (streams.size < sockets) await sleep(10);
    const targets = [...streams];
    const begun = performance.now();
    let sent = 0;
    // The first fifth warms up and is not counted.
    const warmUp = Math.ceil(chunks / 5) * targets.length;
    for (let round = 0; round < chunks; round++) {
      for (const target of targets) {
        target.write(chunk({ content: `${process.hrtime.bigint()}` }));
        sent++;
        // Too early for the next chunk: waiting spreads the chunks evenly.
        const aheadMs = (sent * 1000) / CHUNKS_PER_SECOND - (performance.now() - begun);
        if (aheadMs > 1) await sleep(aheadMs);
      }
    }
    while (times.length < sent) await sleep(10);
    for (const target of targets) target.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    streams.clear();
    const steady = times.slice(warmUp).sort((a, b) => a - b);
    console.log(
      `${sockets} sockets with a turn each | ${CHUNKS_PER_SECOND} | ${quantile(steady, 0.5).toFixed(2)} | ${quantile(steady, 0.99).toFixed(2)}`,
    );
    for (const client of clients) client.disconnect();
  });
}
upstream.close();
upstream.closeAllConnections();

interface Bench {
  readonly url: string;
  readonly socket: Socket | undefined;
}

async function withService(use: (bench: Bench) => Promise<void>, kind: "server" | "bare" = "server"): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-queries-"));
  const server = startWorker<ServerJob, ServerResult>(new URL(`queries/${kind}.ts`, import.meta.url));
  const at = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const { url } = await server.run({ do: "open", dataDir, upstream: at });
  const socket = kind === "server" ? await connect(url!) : undefined;
  try {
    await use({ url: url!, socket });
  } finally {
    socket?.disconnect();
    // Waiting turns are not measured, so the server stops without them.
    await server.stop();
    rmSync(dataDir, { recursive: true });
  }
}

async function connect(url: string): Promise<Socket> {
  const auth = { token: TOKENS.owner, clientInstanceId: `bench-${randomUUID()}` };
  const socket = io(url, { auth, transports: ["websocket"], forceNew: true, reconnection: false });
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("connect_error", reject));
  return socket;
}

async function start(url: string, socket: Socket, prompt: string, agentId: string): Promise<void> {
  const body = JSON.stringify(startBody({ id: socket.id! }, prompt, {}, { agentId }));
  const answer = await fetch(`${url}/api/query/start`, { method: "POST", headers: HEADERS, body });
  if (answer.status !== 202) throw new Error(`A query was answered with ${answer.status}`);
  await answer.body?.cancel();
}

async function submit(
  url: string,
  socket: Socket | undefined,
  prompt: string,
  { concurrency, queries, until }: { concurrency: number; queries: number; until?: (id: string) => Promise<unknown> },
): Promise<{ readonly perSecond: number; readonly p50: number; readonly p99: number }> {
  const pool = new Pool(url, { connections: concurrency });
  // Prepared before the measurement, because the client's work is not measured.
  const bodies = Array.from({ length: queries }, () => startBody({ id: socket?.id ?? "none" }, prompt)).map((body) => ({
    id: body.clientRequestId,
    text: JSON.stringify(body),
  }));
  const times: number[] = [];
  const begun = performance.now();
  const workers = Array.from({ length: concurrency }, async () => {
    for (let next = bodies.pop(); next; next = bodies.pop()) {
      const { id, text } = next;
      const at = performance.now();
      const ended = until?.(id);
      const { statusCode, body } = await pool.request({ path: "/api/query/start", method: "POST", headers: HEADERS, body: text });
      if (statusCode !== 202) throw new Error(`A query was answered with ${statusCode}: ${await body.text()}`);
      await body.dump();
      await ended;
      times.push(performance.now() - at);
    }
  });
  await Promise.all(workers);
  const perSecond = (queries * 1000) / (performance.now() - begun);
  await pool.close();
  times.sort((a, b) => a - b);
  return { perSecond, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

function chunk(delta: object, finish: string | null = null): string {
  const body = {
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "clock",
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
  return `data: ${JSON.stringify(body)}\n\n`;
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
