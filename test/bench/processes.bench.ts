/**
 * Measures what several processes for the model proxy cost: `npm run bench:processes`, about three minutes. One instance, several separate instances
 * (by default two; `-- --processes N`) and one instance with as many processes take turns in short rounds, with the same provider: first on all cores,
 * then with all of them on one core. test/bench/results/processes.md explains the report.
 */
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { cpuOf, peakMemoryOf, startChild, startWorker } from "./proxy/child.ts";
import { type Contestant, requestText } from "./proxy/contestants.ts";
import type { LoadJob, LoadResult } from "./proxy/load.ts";
import { canPin, pin } from "./proxy/pin.ts";
import { type Portico, startPortico } from "./proxy/portico.ts";
import { assertSound } from "./proxy/sound.ts";
import type { Kind } from "./proxy/workload.ts";

const { values: flags } = parseArgs({
  options: { processes: { type: "string", default: "2" }, rounds: { type: "string", default: "9" } },
});
const ROUNDS = Number(flags.rounds);
const ROUND_MS = 1_000;
/** Calls of each process before the rounds: V8 compiles what is called often, and one process gets more calls in the same time than each of several. */
const WARM_CALLS = { plain: 10_000, stream: 2_500 };
/** For each process: more calls in one turn of an event loop cost less each. */
const CONNECTIONS = 32;
const KINDS: readonly Kind[] = ["plain", "stream"];

/** Calls so far, by contestant and kind. */
const warmed = new Map<string, number>();

interface Field {
  readonly name: string;
  /** Each has an address of its own. */
  readonly contestants: readonly Contestant[];
  readonly pids: readonly number[];
}

interface Lap {
  readonly calls: number;
  readonly perSecond: number;
  /** Microseconds per call of all processes together. */
  readonly cpu: number;
  /** The part of the processor time that the busiest process used. */
  readonly share: number;
}

const dir = mkdtempSync(join(tmpdir(), "portico-bench-"));
const log = openSync(join(dir, "stderr.log"), "a");
const upstream = await startChild(process.execPath, [fileURLToPath(new URL("./proxy/upstream.ts", import.meta.url))], log);
const load = startWorker<LoadJob, LoadResult>(new URL("./proxy/load.ts", import.meta.url));
const count = Number(flags.processes);
const separate = await Promise.all(Array.from({ length: count }, (_, at) => startService(`separate-${at}`, [])));
const together = await startService("together", ["--processes", flags.processes]);
const field: readonly Field[] = [
  fieldOf("1", separate.slice(0, 1)),
  fieldOf(`${count} instances`, separate),
  fieldOf(`${count} processes`, [together]),
];
console.log(
  `node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"}), load ${loadavg()[0]!.toFixed(1)}, ${ROUNDS} rounds, ${CONNECTIONS} calls at a time for each process\n`,
);
await measure("all cores, shared with the load");
if (canPin) {
  pin("contestant", ...field.flatMap(({ pids }) => pids));
  pin("load", load.pid, upstream.pid, process.pid);
  await measure("one core for all processes, another one for the load");
}
await Promise.all([...separate, together].map((service) => service.stop()));
await load.stop();
await upstream.stop();
rmSync(dir, { recursive: true });

/** Prints the tables of one placement. */
async function measure(placement: string): Promise<void> {
  for (const kind of KINDS) {
    const laps = new Map(field.map((each): [Field, Lap[]] => [each, []]));
    for (const each of field) {
      for (const contestant of each.contestants) await assertSound(contestant, kind);
      await warm(each, kind);
    }
    for (let round = 0; round < ROUNDS; round++)
      for (const [each, own] of round % 2 === 0 ? laps : [...laps].toReversed()) own.push(await lap(each, kind, ROUND_MS));
    console.log(`${kind === "plain" ? "whole answers" : "streams of 50 chunks"}, ${placement}\n`);
    console.log("| processes | calls/s | CPU µs per call | busiest process | peak MiB, all |");
    console.log("| --- | ---: | ---: | ---: | ---: |");
    for (const [each, own] of laps) console.log(rowOf(each, own));
    const [single, instances, processes] = [...laps.values()] as [Lap[], Lap[], Lap[]];
    console.log(`\n${count} processes ÷ 1: ${ratios(processes, single)}`);
    console.log(`${count} processes ÷ ${count} instances: ${ratios(processes, instances)}\n`);
  }
}

/** Compared within each round, so that other load on the machine affects both. */
function ratios(laps: readonly Lap[], others: readonly Lap[]): string {
  const ratio = (value: (lap: Lap) => number) => median(laps.map((each, round) => value(each) / value(others[round]!)));
  return `calls/s ${ratio(({ perSecond }) => perSecond).toFixed(2)}, CPU per call ${ratio(({ cpu }) => cpu).toFixed(2)}`;
}

function rowOf({ name, pids }: Field, laps: readonly Lap[]): string {
  const of = (value: (lap: Lap) => number) => median(laps.map(value));
  const peak = pids.reduce((sum, pid) => sum + (peakMemoryOf(pid) ?? Number.NaN), 0);
  const cells = [
    name,
    of(({ perSecond }) => perSecond).toFixed(0),
    of(({ cpu }) => cpu).toFixed(0),
    `${of(({ share }) => share * 100).toFixed(0)} %`,
    peak.toFixed(0),
  ];
  return `| ${cells.join(" | ")} |`;
}

async function lap({ name, contestants, pids }: Field, kind: Kind, ms: number): Promise<Lap> {
  const [first, ...others] = contestants.map((contestant) => ({
    port: Number(new URL(contestant.origin).port),
    request: requestText(contestant, kind),
  }));
  const before = pids.map(spentOf);
  const result = await load.run({ ...first!, others, connections: CONNECTIONS * pids.length, ms });
  const spent = pids.map((pid, at) => spentOf(pid) - before[at]!);
  if (result.failures > 0) throw new Error(`${name}: ${result.failures} of ${result.requests} calls failed`);
  const whole = spent.reduce((sum, each) => sum + each, 0);
  return { calls: result.requests, perSecond: result.perSecond, cpu: whole / result.requests, share: Math.max(...spent) / whole };
}

async function warm(field: Field, kind: Kind): Promise<void> {
  const key = `${field.name} ${kind}`;
  while ((warmed.get(key) ?? 0) < WARM_CALLS[kind] * field.pids.length)
    warmed.set(key, (warmed.get(key) ?? 0) + (await lap(field, kind, ROUND_MS)).calls);
}

function startService(name: string, args: readonly string[]): Promise<Portico> {
  const data = join(dir, name);
  mkdirSync(data);
  return startPortico(data, (upstream.ready as { origin: string }).origin, log, undefined, args);
}

function fieldOf(name: string, services: readonly Portico[]): Field {
  return {
    name,
    contestants: services.map(({ origin, pid, tokens }) => ({
      ...{ name, origin, pid, token: tokens.messages },
      ...({ role: "same", protocol: "messages" } as const),
    })),
    pids: services.flatMap(({ pid }) => [pid, ...childrenOf(pid)]),
  };
}

function spentOf(pid: number): number {
  const spent = cpuOf(pid);
  if (spent === undefined) throw new Error("This benchmark needs /proc");
  return spent;
}

/** The further processes of a service. */
function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)]!;
}
