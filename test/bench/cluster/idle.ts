import { setTimeout as sleep } from "node:timers/promises";
import { endAll, nodeTime, placeOf, startEngines } from "./processes.ts";
import type { Servers } from "./servers.ts";

/** Milliseconds of processor time per second. */
export interface IdleCosts {
  readonly node: number;
  readonly postgres: number;
  readonly redis: number;
}

const SETTLE_MS = 4_000;

/** Processor time of processes without work: heartbeats, looks at the other processes, and the upkeep of the journal. */
export async function measureIdle(servers: Servers, name: string, count: number, ms: number): Promise<IdleCosts> {
  const processes = await startEngines(placeOf(servers, name), count);
  try {
    await sleep(SETTLE_MS);
    const [node, spent, begun] = [nodeTime(processes), servers.spent(), performance.now()];
    await sleep(ms);
    const [nodeAfter, after, seconds] = [nodeTime(processes), servers.spent(), (performance.now() - begun) / 1000];
    return {
      node: (nodeAfter - node) / seconds,
      postgres: (after.postgres - spent.postgres) / seconds,
      redis: (after.redis - spent.redis) / seconds,
    };
  } finally {
    await endAll(processes);
  }
}
