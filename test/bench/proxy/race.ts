import { cpuOf, type Worker } from "./child.ts";
import { type Contestant, requestText } from "./contestants.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import type { Kind } from "./workload.ts";

/** The results of one contestant for one kind of call at one concurrency: the median of all rounds. Undefined if it cannot be measured. */
export interface Standing {
  readonly contestant: Contestant;
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** The difference between its p50 and that of direct calls, in milliseconds. */
  readonly added: number;
  /** Microseconds of processor time per request in the contestant's process. */
  readonly cpu: number | undefined;
  /** Requests per second, divided by those of the bare pass-through in the same round. */
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
 * The contestants take turns in short rounds, in alternating order. Comparisons are made within one round, so that other load on the machine
 * affects all contestants. Throws if a request fails, because the numbers would have no meaning.
 */
export async function race(
  contestants: readonly Contestant[],
  load: Worker<LoadJob, LoadResult>,
  { kind, connections, rounds, ms }: RaceOptions,
): Promise<Standing[]> {
  const laps = new Map(contestants.map((contestant): [Contestant, Lap[]] => [contestant, []]));
  for (let round = 0; round < rounds; round += 1) {
    // In one order, what comes before would burden the same contestant in each round.
    for (const [contestant, own] of round % 2 === 0 ? laps : [...laps].toReversed())
      own.push(await lap(contestant, load, { kind, connections, ms }));
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
