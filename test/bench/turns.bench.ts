/**
 * What a turn costs the service, without its model: `npm run bench:turns`, about a minute. Queries come over HTTP and end over Socket.IO;
 * background turns begin in the service. `-- --beside ../other-checkout` measures another checkout in the same run, in turns. Processor
 * time is that of all threads of the service, and hardly depends on what else the machine does.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { io, type Socket } from "socket.io-client";
import { Pool } from "undici";
import { startBody, TOKENS } from "../harness/agent-app.ts";
import { cpuOf, startWorker, type Worker } from "./proxy/child.ts";
import type { TurnsJob, TurnsResult } from "./turns/server.ts";

const ROUNDS = 5;
const COUNT = 1000;
const KINDS = [
  { kind: "query", concurrency: 1 },
  { kind: "query", concurrency: 32 },
  { kind: "background turn", concurrency: 1 },
  { kind: "background turn", concurrency: 8 },
] as const;
type Kind = (typeof KINDS)[number];

interface Contestant {
  readonly name: string;
  readonly worker: Worker<TurnsJob, TurnsResult>;
  readonly url: string;
  readonly socket: Socket;
  readonly dataDir: string;
}

interface Measured {
  readonly perSecond: number;
  readonly cpu: number;
  readonly commits: number;
}

const beside = process.argv[process.argv.indexOf("--beside") + 1];
const checkouts: [name: string, folder: string][] = [["this", resolve(import.meta.dirname, "../..")]];
if (process.argv.includes("--beside") && beside) checkouts.push(["other", resolve(beside)]);

console.log(
  `node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"}), load ${loadavg()[0]!.toFixed(1)}\n`,
);
const contestants = await Promise.all(checkouts.map(([name, checkout]) => open(name, checkout)));
console.log("what | checkout | finished/s | CPU µs each | commits each");
for (const kind of KINDS) {
  const results = contestants.map((): Measured[] => []);
  for (const contestant of contestants) await measure(contestant, kind, COUNT / 4);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, contestant] of contestants.entries())
      results[at]!.push(await measure(contestant, kind, kind.concurrency === 1 ? COUNT / 4 : COUNT));
  }
  const medians = results.map((rounds) => ({
    perSecond: median(rounds.map(({ perSecond }) => perSecond)),
    cpu: median(rounds.map(({ cpu }) => cpu)),
    commits: median(rounds.map(({ commits }) => commits)),
  }));
  for (const [at, { name }] of contestants.entries()) {
    const { perSecond, cpu, commits } = medians[at]!;
    const cells = [perSecond.toFixed(0), cpu.toFixed(0), commits.toFixed(2)];
    console.log(`${kind.kind}, ${kind.concurrency} at a time | ${name} | ${cells.join(" | ")}`);
  }
  const [own, other] = medians;
  if (own && other)
    console.log(`  this ÷ other: CPU ${(own.cpu / other.cpu).toFixed(2)}, commits ${(own.commits / other.commits).toFixed(2)}`);
}
for (const { worker, socket, dataDir } of contestants) {
  socket.disconnect();
  await worker.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function open(name: string, checkout: string): Promise<Contestant> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-turns-"));
  const worker = startWorker<TurnsJob, TurnsResult>(new URL("turns/server.ts", import.meta.url));
  const { url } = await worker.run({ do: "open", dataDir, checkout: `${pathToFileURL(checkout).href}/` });
  const auth = { token: TOKENS.owner, clientInstanceId: `bench-${randomUUID()}` };
  const socket = io(url!, { auth, transports: ["websocket"], forceNew: true, reconnection: false });
  await new Promise<void>((done, reject) => socket.once("connect", done).once("connect_error", reject));
  return { name, worker, url: url!, socket, dataDir };
}

async function measure(contestant: Contestant, { kind, concurrency }: Kind, turns: number): Promise<Measured> {
  const { worker } = contestant;
  const commits = async () => (await worker.run({ do: "count" })).commits!;
  const [before, cpu] = [await commits(), cpuOf(worker.pid)!];
  const begun = performance.now();
  if (kind === "query") await submit(contestant, concurrency, turns);
  else await worker.run({ do: "background", turns, concurrency });
  const perSecond = (turns * 1000) / (performance.now() - begun);
  return { perSecond, cpu: (cpuOf(worker.pid)! - cpu) / turns, commits: ((await commits()) - before) / turns };
}

async function submit({ url, socket }: Contestant, concurrency: number, turns: number): Promise<void> {
  const pool = new Pool(url, { connections: concurrency });
  const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };
  const ended = new Map<string, () => void>();
  const hear = ({ clientRequestId }: { clientRequestId: string }) => ended.get(clientRequestId)?.();
  socket.on("query:complete", hear);
  let left = turns;
  const one = async () => {
    while (left-- > 0) {
      const query = startBody({ id: socket.id! }, "go");
      const over = new Promise<void>((done) => ended.set(query.clientRequestId, done));
      const { statusCode, body } = await pool.request({
        ...{ path: "/api/query/start", method: "POST", headers },
        body: JSON.stringify(query),
      });
      if (statusCode !== 202) throw new Error(`A query was answered with ${statusCode}: ${await body.text()}`);
      await body.dump();
      await over;
      ended.delete(query.clientRequestId);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, one));
  socket.off("query:complete", hear);
  await pool.close();
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}
