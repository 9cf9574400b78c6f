/**
 * Measures what a cluster costs: `npm run bench:cluster`, about five minutes on an idle machine. The processes share a PostgreSQL and a
 * Redis server that only the benchmark uses. The report has the processor time of each server per run beside the rates, because other
 * programs on the machine change rates far more than processor time. Names behind `--` select parts: runs, processes, failures, across,
 * sizes, others.
 */
import { rmSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { measureEvents, measureHints } from "./cluster/across.ts";
import { measureTakeover } from "./cluster/failures.ts";
import { measureIdle } from "./cluster/idle.ts";
import { measureOther, OTHER_PACKAGES } from "./cluster/other-engines.ts";
import { median, quantile } from "./cluster/processes.ts";
import { measureRuns, medianCosts, type RunCosts } from "./cluster/runs.ts";
import { startServers } from "./cluster/servers.ts";
import { measureSockets, measureWaiting } from "./cluster/sizes.ts";
import { installEngines } from "./workflow/install-engines.ts";

const ROUNDS = 5;
const RUNS = 2_000;
const TAKEOVERS = { times: 5, leaseMs: 15_000 };
const FREEZES = { times: 3, leaseMs: 3_000 };
const HINTS = 200;
const EVENTS = { rounds: 7, sockets: 10, pieces: 100, gapMs: 20 };
const IDLE_MS = 15_000;
const WAITING = 20_000;
const SOCKETS = 2_000;
const OTHERS = [
  { name: "bullmq", what: "BullMQ 6.7", runs: 4_000 },
  { name: "dbos", what: "DBOS Transact 5.3", runs: 1_000 },
  { name: "restate", what: "Restate 1.7", runs: 1_000 },
] as const;
/** Processor time per run may grow by this factor with more processes. */
const FLAT = 1.2;

interface Target {
  readonly what: string;
  readonly most: number;
  readonly measured: number;
  readonly unit: string;
}

const parts = process.argv.slice(2);
const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
const targets: Target[] = [];
const aim = (what: string, most: number, measured: number, unit = "ms"): void =>
  void targets.push({ what, most, measured, unit });
const ms = (value: number): string => value.toFixed(2);
const row = (...cells: readonly (string | number)[]): void => console.log(`| ${cells.join(" | ")} |`);
const head = (...cells: readonly string[]): void => {
  console.log();
  row(...cells);
  row(...cells.map((_, at) => (at === 0 ? "---" : "---:")));
};

// Each started process adds an exit listener that ends it with the benchmark.
process.setMaxListeners(0);
const model = cpus()[0]?.model ?? "unknown";
const load = () => loadavg()[0]!.toFixed(1);
console.log(`node ${process.version}, ${availableParallelism()} cores (${model}), load ${load()} before`);
const servers = await startServers();

if (wants("runs")) {
  head("runs of five steps, one process", "Node ms", "PostgreSQL ms", "Redis ms", "accepted/s", "finished/s", "WAL bytes");
  const load = { processes: 1, runs: RUNS } as const;
  const loads = [
    { ...load, kind: "here", until: "finished" },
    { ...load, kind: "anywhere", until: "accepted" },
  ] as const;
  const [here, burst] = (await measureRuns(servers, "runs", loads, ROUNDS)).map(medianCosts) as [RunCosts, RunCosts];
  tellRuns("begin where they are accepted, 50 at a time", here);
  tellRuns("all dispatched, a burst", burst);
  aim("a run that begins where it is accepted: Node", 0.6, here.node);
  aim("a run that begins where it is accepted: PostgreSQL", 0.4, here.postgres);
  aim("a dispatched run: Node", 1, burst.node);
  aim("a dispatched run: PostgreSQL", 0.8, burst.postgres);
  aim("a dispatched run: Redis", 0.15, burst.redis);
}

if (wants("processes")) {
  head("a burst on several processes", "Node ms", "PostgreSQL ms", "Redis ms", "accepted/s", "finished/s", "executed elsewhere");
  const counts = [1, 2, 3];
  const loads = counts.map((processes) => ({ kind: "anywhere", until: "accepted", processes, runs: RUNS / 2 }) as const);
  const rounds = await measureRuns(servers, "on", loads, ROUNDS);
  for (const [at, processes] of counts.entries()) {
    const found = medianCosts(rounds[at]!);
    row(processes, ...timesOf(found), ...ratesOf(found), `${(found.elsewhere * 100).toFixed(0)} %`);
  }
  const total = ({ node, postgres, redis }: RunCosts): number => node + postgres + redis;
  for (const [at, processes] of counts.entries()) {
    const grown = median(rounds[at]!.map((costs, round) => total(costs) / total(rounds[0]![round]!)));
    if (processes > 1) aim(`processor time per run with ${processes} processes ÷ with one`, FLAT, grown, "");
  }
}

if (wants("failures")) {
  head("from the loss of a process until others execute its 20 works", "median ms", "slowest ms", "times");
  const killed = await measureTakeover(servers, { name: "killed", signal: "SIGKILL", ...TAKEOVERS });
  row("SIGKILL", quantile(killed, 0.5).toFixed(0), Math.max(...killed).toFixed(0), killed.length);
  const frozen = await measureTakeover(servers, { name: "frozen", signal: "SIGSTOP", ...FREEZES });
  row(
    `SIGSTOP, a lease of ${FREEZES.leaseMs} ms`,
    quantile(frozen, 0.5).toFixed(0),
    Math.max(...frozen).toFixed(0),
    frozen.length,
  );
  aim("takeover after SIGKILL, slowest", 1000, Math.max(...killed));
  aim("takeover after a freeze, slowest: the lease and a second", FREEZES.leaseMs + 1000, Math.max(...frozen));
}

if (wants("across")) {
  head("latency", "p50 ms", "p99 ms");
  tellTimes("from a signal to the execution in another process", await measureHints(servers, "signals", "signal", HINTS));
  tellTimes("from a cancellation to the execution in another process", await measureHints(servers, "cancels", "cancel", HINTS));
  const perSecond = Math.round((EVENTS.sockets * 1000) / EVENTS.gapMs);
  for (const elsewhere of [false, true]) {
    const rounds = await measureEvents(servers, elsewhere ? "far" : "near", { elsewhere, ...EVENTS });
    const of = (share: number) => median(rounds.map((times) => quantile(times, share)));
    row(
      `from an event of a turn, ${perSecond}/s, to the client of ${elsewhere ? "another" : "the same"} process, median of ${rounds.length} rounds`,
      of(0.5).toFixed(1),
      of(0.99).toFixed(1),
    );
    if (elsewhere) aim("event of a turn that another process executes, p99", 15, of(0.99));
  }
}

if (wants("sizes")) {
  head("processor time of processes without work, per second", "Node ms", "PostgreSQL ms", "Redis ms");
  for (const count of [1, 3]) {
    const { node, postgres, redis } = await measureIdle(servers, `idle${count}`, count, IDLE_MS);
    row(`${count} process${count > 1 ? "es" : ""}`, node.toFixed(1), postgres.toFixed(1), redis.toFixed(1));
  }
  head("size of", "bytes");
  const waiting = await measureWaiting(servers, "waiting", WAITING);
  row("a run that waits in the queue, in Redis", waiting.redis.toFixed(0));
  row("a run that waits in the queue, in PostgreSQL", waiting.postgres.toFixed(0));
  const sockets = await measureSockets(servers, "sockets", SOCKETS);
  row("an idle socket, in use in its process", sockets.used.toFixed(0));
  row("an idle socket, resident in its process", sockets.resident.toFixed(0));
  row("an idle socket, in Redis", sockets.redis.toFixed(0));
}

if (wants("others")) {
  head("other engines, five steps, 50 at a time", "Node ms", "PostgreSQL ms", "Redis ms", "own server ms", "finished/s");
  const packages = installEngines(...OTHER_PACKAGES);
  for (const { name, what, runs } of OTHERS) {
    try {
      const { node, postgres, redis, own, perSecond } = await measureOther(servers, name, packages, runs);
      row(what, ms(node), ms(postgres), ms(redis), ms(own), perSecond.toFixed(0));
    } catch (error) {
      row(what, `not measured: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  rmSync(packages, { recursive: true });
}

await servers[Symbol.asyncDispose]();
head("target", "at most", "measured", "");
for (const { what, most, measured, unit } of targets) {
  row(what, `${most} ${unit}`.trim(), `${ms(measured)} ${unit}`.trim(), measured <= most ? "met" : "MISSED");
}
console.log(`\nload ${load()} after`);
process.exit(0);

function timesOf({ node, postgres, redis }: RunCosts): string[] {
  return [ms(node), ms(postgres), ms(redis)];
}

function ratesOf({ acceptedPerSecond, finishedPerSecond }: RunCosts): string[] {
  return [acceptedPerSecond.toFixed(0), finishedPerSecond.toFixed(0)];
}

function tellRuns(what: string, costs: RunCosts): void {
  row(what, ...timesOf(costs), ...ratesOf(costs), costs.walBytes.toFixed(0));
}

function tellTimes(what: string, times: readonly number[]): void {
  row(what, quantile(times, 0.5).toFixed(1), quantile(times, 0.99).toFixed(1));
}
