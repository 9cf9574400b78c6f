/**
 * Measures what realtime costs compared with plain Socket.IO: `npm run bench:sockets`, about a minute. Each contestant is a separate
 * process. Real clients in this process connect over WebSockets. Memory is the difference between a server with 5,000 idle sockets and one
 * without sockets. Latency is measured from just before `send` to the client's listener, with one event to every socket per round.
 * Throughput is the number of events per second without a pause between rounds, beside the server's processor time per event: the clients'
 * own processor time limits the rate.
 */
import { randomUUID } from "node:crypto";
import { availableParallelism, cpus } from "node:os";
import { io, type Socket } from "socket.io-client";
import { connectWebSocket } from "../harness/web-socket-client.ts";
import { cpuOf, startWorker, type Worker } from "./proxy/child.ts";
import type { ServerJob, ServerResult } from "./sockets/server.ts";

const KINDS = ["bare", "portico"] as const;
/** Idle sockets are also measured at the agent service, whose own channel keeps more data. */
const IDLE_KINDS = [...KINDS, "service"] as const;
type Kind = (typeof IDLE_KINDS)[number];
/** `portico` is the adapter `realtime/socket-io`, `websocket` the adapter `realtime/websocket`. */
const THROUGHPUT_KINDS = ["bare", "portico", "websocket"] as const;
const IDLE = 5_000;
const MEMORY_ROUNDS = 3;
const CONNECTING_AT_ONCE = 100;
const LATENCY = [
  { sockets: 1, rounds: 1_000 },
  { sockets: 100, rounds: 200 },
  { sockets: 1_000, rounds: 40 },
];
const THROUGHPUT = { sockets: 100, rounds: 500, times: 5 };
/** The contestants take turns, so that other load on the machine affects all of them. */
const TURNS = 4;

type Contestant = Worker<ServerJob, ServerResult> & { readonly origin: string };

// Each started process adds an exit listener that ends it with the benchmark.
process.setMaxListeners(0);
console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);
const memory = { bare: [] as Memory[], portico: [] as Memory[], service: [] as Memory[] };
for (let round = 0; round < MEMORY_ROUNDS; round++) {
  for (const kind of IDLE_KINDS) memory[kind].push(await memoryPerSocket(kind));
}
const used = (kind: Kind) => median(memory[kind].map((each) => each.used));
const resident = (kind: Kind) => median(memory[kind].map((each) => each.resident));
console.log(`${IDLE} idle sockets | in use per socket | resident per socket`);
for (const kind of IDLE_KINDS) console.log(`${kind} | ${kib(used(kind))} | ${kib(resident(kind))}`);
for (const kind of IDLE_KINDS.slice(1)) {
  console.log(`${kind} ÷ bare | ${(used(kind) / used("bare")).toFixed(2)} | ${(resident(kind) / resident("bare")).toFixed(2)}`);
}

console.log("\nsockets | who | p50 ms | p99 ms");
for (const { sockets, rounds } of LATENCY) {
  const times = { bare: [] as number[], portico: [] as number[] };
  const running = await Promise.all(KINDS.map(async (kind) => ({ kind, contestant: await start(kind) })));
  const clients: Socket[] = [];
  for (const { kind, contestant } of running) {
    const own = await connectAll(contestant.origin, sockets);
    for (const client of own) {
      client.on("tick", ({ at }: { at: number }) => times[kind].push((Number(process.hrtime.bigint()) - at) / 1e6));
    }
    clients.push(...own);
    await contestant.run({ do: "send", rounds: 20, gapMs: 2 + sockets / 10 });
    times[kind].length = 0;
  }
  for (let turn = 0; turn < TURNS; turn++) {
    for (const { contestant } of running) {
      await contestant.run({ do: "send", rounds: rounds / TURNS, gapMs: 2 + sockets / 10 });
    }
  }
  for (const kind of KINDS) {
    if (times[kind].length !== sockets * rounds) throw new Error(`${kind} lost events`);
    console.log(`${sockets} | ${kind} | ${quantile(times[kind], 0.5).toFixed(2)} | ${quantile(times[kind], 0.99).toFixed(2)}`);
  }
  for (const client of clients) client.disconnect();
  for (const { contestant } of running) await contestant.stop();
}

console.log(`\n${THROUGHPUT.sockets} sockets, as fast as possible | events/s | CPU µs of the server per event`);
const costs = { bare: [] as Throughput[], portico: [] as Throughput[], websocket: [] as Throughput[] };
for (let time = 0; time < THROUGHPUT.times; time++) {
  for (const kind of THROUGHPUT_KINDS) costs[kind].push(await throughputOf(kind));
}
for (const kind of THROUGHPUT_KINDS) {
  const [rate, micros] = [median(costs[kind].map((each) => each.rate)), median(costs[kind].map((each) => each.micros))];
  console.log(`${kind} | ${rate.toFixed(0)} | ${micros.toFixed(1)}`);
}
process.exit(0);

interface Throughput {
  /** Events per second, over all sockets. */
  readonly rate: number;
  /** Processor time of the server per event. */
  readonly micros: number;
}

async function throughputOf(kind: (typeof THROUGHPUT_KINDS)[number]): Promise<Throughput> {
  const contestant = await start(kind);
  const { sockets, rounds } = THROUGHPUT;
  let heard = 0;
  const hear = (): void => void heard++;
  const leave =
    kind === "websocket" ? await hearFrames(contestant.origin, sockets, hear) : await hearTicks(contestant.origin, sockets, hear);
  const sendRounds = async (count: number): Promise<void> => {
    heard = 0;
    await contestant.run({ do: "send", rounds: count, gapMs: 0 });
    while (heard < count * sockets) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  await sendRounds(rounds / 5);
  const [used, begun] = [cpuOf(contestant.pid)!, performance.now()];
  await sendRounds(rounds);
  const [micros, ms] = [cpuOf(contestant.pid)! - used, performance.now() - begun];
  leave();
  await contestant.stop();
  return { rate: (rounds * sockets * 1000) / ms, micros: micros / (rounds * sockets) };
}

async function hearTicks(origin: string, count: number, hear: () => void): Promise<() => void> {
  const clients = await connectAll(origin, count);
  for (const client of clients) client.on("tick", hear);
  return () => clients.forEach((client) => client.disconnect());
}

async function hearFrames(origin: string, count: number, hear: () => void): Promise<() => void> {
  const hello = { name: "somebody" };
  const clients = await Promise.all(Array.from({ length: count }, () => connectWebSocket(`${origin}/live/`, hello)));
  for (const { socket } of clients) {
    socket.addEventListener("message", ({ data }) => {
      if (JSON.parse(data as string).type === "event") hear();
    });
  }
  return () => clients.forEach(({ socket }) => socket.close());
}

interface Memory {
  readonly used: number;
  readonly resident: number;
}

async function memoryPerSocket(kind: Kind): Promise<Memory> {
  const contestant = await start(kind);
  // The first connections load code and fill caches, which are not counted.
  for (const client of await connectAll(contestant.origin, CONNECTING_AT_ONCE, kind)) client.disconnect();
  const before = await contestant.run({ do: "memory" });
  const clients = await connectAll(contestant.origin, IDLE, kind);
  const after = await contestant.run({ do: "memory" });
  for (const client of clients) client.disconnect();
  await contestant.stop();
  return { used: (after.used! - before.used!) / IDLE, resident: (after.resident! - before.resident!) / IDLE };
}

async function start(kind: Kind | (typeof THROUGHPUT_KINDS)[number]): Promise<Contestant> {
  const worker = startWorker<ServerJob, ServerResult>(new URL("./sockets/server.ts", import.meta.url));
  const { origin } = await worker.run({ do: "listen", kind });
  return { ...worker, origin: origin! };
}

async function connectAll(origin: string, count: number, kind: Kind = "bare"): Promise<Socket[]> {
  const clients: Socket[] = [];
  while (clients.length < count) {
    const batch = Math.min(CONNECTING_AT_ONCE, count - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: batch }, () => connect(origin, kind)))));
  }
  return clients;
}

function connect(origin: string, kind: Kind): Promise<Socket> {
  const isService = kind === "service";
  const auth = isService ? { token: "owner-token", clientInstanceId: randomUUID() } : { name: "somebody" };
  const client = io(origin, {
    path: isService ? "/socket.io/" : "/live/",
    transports: ["websocket"],
    forceNew: true,
    reconnection: false,
    auth,
  });
  return new Promise((resolve, reject) => {
    client.once("connect", () => resolve(client));
    client.once("connect_error", reject);
  });
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function quantile(values: readonly number[], at: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(Math.floor(values.length * at), values.length - 1)]!;
}

function kib(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}
