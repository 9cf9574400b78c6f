import { setTimeout as sleep } from "node:timers/promises";
import type { RunKind } from "./engine-process.ts";
import { endAll, type EngineProcess, median, nodeTime, placeOf, startEngines } from "./processes.ts";
import type { Servers } from "./servers.ts";

/** How runs are started. */
export interface RunLoad {
  readonly kind: RunKind;
  /** `finished`: a client starts its next run when the last one has finished. `accepted`: at once. */
  readonly until: "accepted" | "finished";
  readonly processes: number;
  /** Per process and round. */
  readonly runs: number;
}

/** Times are milliseconds of processor time per run. */
export interface RunCosts {
  readonly node: number;
  readonly postgres: number;
  readonly redis: number;
  readonly acceptedPerSecond: number;
  readonly finishedPerSecond: number;
  readonly walBytes: number;
  /** Share of runs that another process executed than the process that accepted them. */
  readonly elsewhere: number;
}

const CLIENTS = 50;

/** Rounds before the counted ones. They compile code and fill tables. */
const WARM_UPS = 2;

/**
 * Runs of five durable steps, from their start to the commit that ends them. The loads take turns, each with its own processes and
 * its own schema, so that other load on the machine affects all of them. One list per load, with one entry per round.
 */
export async function measureRuns(
  servers: Servers,
  name: string,
  loads: readonly RunLoad[],
  rounds: number,
): Promise<readonly (readonly RunCosts[])[]> {
  const all: { load: RunLoad; name: string; processes: EngineProcess[]; found: RunCosts[] }[] = [];
  try {
    for (const [at, load] of loads.entries()) {
      const own = `${name}${at}`;
      all.push({ load, name: own, processes: await startEngines(placeOf(servers, own), load.processes), found: [] });
    }
    for (let round = -WARM_UPS; round < rounds; round++) {
      for (const each of all) {
        const costs = await measureRound(servers, each.name, each.processes, each.load);
        if (round >= 0) each.found.push(costs);
        // Plans of prepared statements suit a table with rows, as they do in a service that has run for a minute.
        else await servers.query(`ANALYZE "${each.name}"."_engine_work", "${each.name}"."_engine_notes"`);
      }
    }
    return all.map(({ found }) => found);
  } finally {
    for (const { processes } of all) await endAll(processes);
  }
}

/** The median of each number. */
export function medianCosts(rounds: readonly RunCosts[]): RunCosts {
  const keys = Object.keys(rounds[0]!) as (keyof RunCosts)[];
  return Object.fromEntries(keys.map((key) => [key, median(rounds.map((each) => each[key]))])) as unknown as RunCosts;
}

async function measureRound(
  servers: Servers,
  name: string,
  processes: readonly EngineProcess[],
  { kind, until, runs }: RunLoad,
): Promise<RunCosts> {
  const counts = async () => {
    const each = await Promise.all(processes.map((one) => one.run({ do: "count" })));
    return { ended: sum(each.map(({ ended = 0 }) => ended)), foreign: sum(each.map(({ foreign = 0 }) => foreign)) };
  };
  const total = runs * processes.length;
  const before = await counts();
  const wal = await walPosition(servers);
  const [node, spent] = [nodeTime(processes), servers.spent()];
  const begun = performance.now();
  await Promise.all(processes.map((each) => each.run({ do: "load", kind, runs, clients: CLIENTS, until })));
  const accepted = performance.now() - begun;
  while ((await counts()).ended - before.ended < total) await sleep(20);
  const finished = performance.now() - begun;
  // The function of a run returns before its end is stored.
  while (await hasOpen(servers, name)) await sleep(20);
  const [nodeAfter, spentAfter] = [nodeTime(processes), servers.spent()];
  return {
    node: (nodeAfter - node) / total,
    postgres: (spentAfter.postgres - spent.postgres) / total,
    redis: (spentAfter.redis - spent.redis) / total,
    acceptedPerSecond: (total * 1000) / accepted,
    finishedPerSecond: (total * 1000) / finished,
    walBytes: ((await walPosition(servers)) - wal) / total,
    elsewhere: ((await counts()).foreign - before.foreign) / total,
  };
}

async function hasOpen({ query }: Servers, name: string): Promise<boolean> {
  return (await query(`SELECT 1 FROM "${name}"."_engine_work" WHERE ended IS NULL AND kind <> 'hold' LIMIT 1`)).length > 0;
}

async function walPosition({ query }: Servers): Promise<number> {
  return Number((await query("SELECT pg_current_wal_insert_lsn() - '0/0' AS at"))[0].at);
}

function sum(values: readonly number[]): number {
  return values.reduce((all, each) => all + each, 0);
}
