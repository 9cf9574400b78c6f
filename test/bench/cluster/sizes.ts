import { setTimeout as sleep } from "node:timers/promises";
import { connectTo } from "./across.ts";
import { endAll, placeOf, startAgent, startEngines } from "./processes.ts";
import type { Servers } from "./servers.ts";

const SETTLE_MS = 1000;
const CONNECTING_AT_ONCE = 50;

/** Bytes of one run that waits in the queue. */
export async function measureWaiting(
  servers: Servers,
  name: string,
  runs: number,
): Promise<{ readonly redis: number; readonly postgres: number }> {
  const processes = await startEngines({ ...placeOf(servers, name), executes: false }, 1);
  try {
    const load = { do: "load", kind: "anywhere", clients: 50, until: "accepted" } as const;
    await processes[0]!.run({ ...load, runs: 500 });
    await sleep(SETTLE_MS);
    const before = { redis: await redisMemory(servers), postgres: await tableBytes(servers, name) };
    await processes[0]!.run({ ...load, runs });
    await sleep(SETTLE_MS);
    return {
      redis: ((await redisMemory(servers)) - before.redis) / runs,
      postgres: ((await tableBytes(servers, name)) - before.postgres) / runs,
    };
  } finally {
    await endAll(processes);
  }
}

/** Bytes of one idle socket at an agent service: in use and resident in its process, and in Redis. */
export async function measureSockets(
  servers: Servers,
  name: string,
  sockets: number,
): Promise<{ readonly used: number; readonly resident: number; readonly redis: number }> {
  const service = await startAgent(placeOf(servers, name));
  const connect = async (count: number) => {
    const clients = [];
    while (clients.length < count) {
      clients.push(...(await Promise.all(Array.from({ length: CONNECTING_AT_ONCE }, () => connectTo(service.url)))));
    }
    return clients;
  };
  const memory = async () => {
    await sleep(SETTLE_MS);
    const { used = 0, resident = 0 } = await service.run({ do: "memory" });
    return { used, resident, redis: await redisMemory(servers) };
  };
  try {
    // The first connections load code and fill caches.
    for (const client of await connect(CONNECTING_AT_ONCE * 2)) client.disconnect();
    const before = await memory();
    const clients = await connect(sockets);
    const after = await memory();
    for (const client of clients) client.disconnect();
    const per = (key: keyof typeof after) => (after[key] - before[key]) / sockets;
    return { used: per("used"), resident: per("resident"), redis: per("redis") };
  } finally {
    await endAll([service]);
  }
}

async function redisMemory({ ask }: Servers): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(String(await ask("INFO", "memory")))![1]);
}

async function tableBytes({ query }: Servers, name: string): Promise<number> {
  const text = `SELECT pg_total_relation_size('"${name}"._engine_work') + pg_total_relation_size('"${name}"._engine_notes') AS bytes`;
  return Number((await query(text))[0].bytes);
}
