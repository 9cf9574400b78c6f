import { cpuOf, type Worker } from "./child.ts";
import { type Contestant, requestText } from "./contestants.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import type { Kind } from "./workload.ts";

/**
 * What one contestant did with one kind of call at one concurrency: the median of all rounds. Undefined where it cannot be told.
 */
export interface Standing {
  readonly contestant: Contestant;
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Milliseconds of p50 more than the way straight to the upstream. */
  readonly added: number;
  /** Microseconds per request in the contestant's own process. */
  readonly cpu: number | undefined;
  /** Requests per second as a part of the bare pass-through's in the same round. */
  readonly ofBare: number;
}

export interface RaceOptions {
  readonly kind: Kind;
  readonly connections: number;
  readonly rounds: number;
  /** Milliseconds of each contestant in each round. */
  readonly ms: number;
}

interface Lap extends LoadResult {
  readonly cpu: number | undefined;
}

/**
 * Let the contestants take turns in short rounds: a machine that others use too is slow for all of them alike, and what is
 * compared is compared within one round. Throws when a request fails, for then the numbers mean nothing.
 */
export async function race(
  contestants: readonly Contestant[],
  load: Worker<LoadJob, LoadResult>,
  { kind, connections, rounds, ms }: RaceOptions,
): Promise<Standing[]> {
  const laps = new Map(contestants.map((contestant): [Contestant, Lap[]] => [contestant, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [contestant, own] of laps) own.push(await lap(contestant, load, { kind, connections, ms }));
  }
  const lapsOf = (role: Contestant["role"]) => laps.get(contestants.find((each) => each.role === role)!)!;
  const straight = lapsOf("straight");
  const bare = lapsOf("bare");
  return contestants.map((contestant) => {
    const own = laps.get(contestant)!;
    const cpu = own.map((each) => each.cpu).filter((each) => each !== undefined);
    return {
      contestant,
      perSecond: median(own.map((each) => each.perSecond)),
      p50: median(own.map((each) => each.p50)),
      p99: median(own.map((each) => each.p99)),
      added: median(own.map((each, round) => each.p50 - straight[round]!.p50)),
      cpu: cpu.length > 0 ? median(cpu) : undefined,
      ofBare: median(own.map((each, round) => each.perSecond / bare[round]!.perSecond)),
    };
  });
}

async function lap(
  contestant: Contestant,
  load: Worker<LoadJob, LoadResult>,
  { kind, connections, ms }: Omit<RaceOptions, "rounds">,
): Promise<Lap> {
  const port = Number(new URL(contestant.origin).port);
  const before = cpuOf(contestant.pid);
  const result = await load.run({ port, request: requestText(contestant, kind), connections, ms });
  const after = cpuOf(contestant.pid);
  if (result.failures > 0) throw new Error(`${contestant.name}: ${result.failures} of ${result.requests} calls failed`);
  return { ...result, cpu: before === undefined || after === undefined ? undefined : (after - before) / result.requests };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
