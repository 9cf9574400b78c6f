import { cpuOf, startWorker, type Worker } from "../proxy/child.ts";
import type { AgentAnswer, AgentJob } from "./agent-process.ts";
import type { EngineAnswer, EngineJob, EnginePlace } from "./engine-process.ts";
import type { Servers } from "./servers.ts";

export type EngineProcess = Worker<EngineJob, EngineAnswer>;
export type AgentProcess = Worker<AgentJob, AgentAnswer> & { readonly url: string };

/** A schema, and a prefix in Redis, of one measurement. */
export function placeOf({ postgresUrl, redisUrl }: Servers, name: string, leaseMs = 15_000): EnginePlace {
  return { postgresUrl, redisUrl, name, leaseMs, executes: true };
}

/** Started one after another, because the first process creates the tables. */
export async function startEngines(place: EnginePlace, count: number): Promise<EngineProcess[]> {
  const processes: EngineProcess[] = [];
  while (processes.length < count) {
    const started = startWorker<EngineJob, EngineAnswer>(new URL("engine-process.ts", import.meta.url));
    await started.run({ do: "open", ...place });
    processes.push(started);
  }
  return processes;
}

export async function startAgent(place: EnginePlace): Promise<AgentProcess> {
  const started = startWorker<AgentJob, AgentAnswer>(new URL("agent-process.ts", import.meta.url));
  const { url } = await started.run({ do: "open", ...place });
  return { ...started, url: url! };
}

/** The processor time that processes have used until now, in milliseconds. */
export function nodeTime(processes: readonly { readonly pid: number }[]): number {
  return processes.reduce((sum, { pid }) => sum + (cpuOf(pid) ?? Number.NaN) / 1000, 0);
}

/** Ends processes without asking them to hand over their work: measured work needs no end. */
export async function endAll(processes: readonly { readonly pid: number; stop(): Promise<void> }[]): Promise<void> {
  await Promise.all(processes.map((each) => each.stop()));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
