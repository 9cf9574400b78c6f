/** One process of a cluster that shares an engine. It starts runs of five durable steps, and executes runs of all processes. */
import { redisBus } from "@portico/cluster/bus/redis";
import { systemClock } from "@portico/adapters/clock/system";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports, Secret } from "@portico/core";

export interface EnginePlace {
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** The schema, and the prefix of keys in Redis. */
  readonly name: string;
  readonly leaseMs: number;
  readonly executes: boolean;
}

/** `here`: a run begins where it is accepted. `anywhere`: every run goes through the queue. */
export type RunKind = "here" | "anywhere";

export type EngineJob =
  | ({ readonly do: "open" } & EnginePlace)
  /** Start runs, this many at a time. Each client waits until its run is accepted, or until it has finished. */
  | {
      readonly do: "load";
      readonly kind: RunKind;
      readonly runs: number;
      readonly clients: number;
      readonly until: "accepted" | "finished";
    }
  | { readonly do: "count" }
  /** Accept works that end when they get a signal or are cancelled. */
  | { readonly do: "hold"; readonly runs: number }
  | { readonly do: "signal" | "cancel"; readonly id: string }
  /** When works of `hold` began here, and when their signal or cancellation arrived. */
  | { readonly do: "held" }
  | { readonly do: "close" };

export interface EngineAnswer {
  /** What each run took, in milliseconds. */
  readonly took?: readonly number[];
  /** When a call began, on the clock that all processes share. */
  readonly at?: number;
  /** The number of runs that ended here, and how many of them another process had accepted. */
  readonly ended?: number;
  readonly foreign?: number;
  readonly ids?: readonly string[];
  readonly began?: Readonly<Record<string, number>>;
  readonly heard?: Readonly<Record<string, number>>;
}

const STEPS = 5;
const own = `${process.pid}`;
const whenDone = new Map<string, () => void>();
/** When a work of the kind `hold` began here, and when its signal or cancellation arrived. By ID. */
const began = new Map<string, number>();
const heard = new Map<string, number>();
let [ended, foreign, works] = [0, 0, 0];
let app: Awaited<ReturnType<typeof createApp>>;
let engine: ports.Engine;
let bus: ports.Bus;

const NOTHING = async (): Promise<void> => {};
/** Milliseconds of a clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

async function run(context: ports.WorkContext): Promise<void> {
  for (let at = 0; at < STEPS; at++) await context.step(`step ${at}`, NOTHING, { repeatable: true });
  ended++;
  const [owner = "", , waits] = context.id.split("-");
  if (owner === own) return whenDone.get(context.id)?.();
  foreign++;
  if (waits) bus.publish(`bench/${owner}`, context.id);
}

/** Executes until it is cancelled or signalled. */
async function hold(context: ports.WorkContext): Promise<void> {
  began.set(context.id, now());
  const aborted = new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve(), { once: true }));
  const told = context.waitFor("word").catch(() => {});
  await Promise.race([aborted, told]);
  heard.set(context.id, now());
}

async function open({ postgresUrl, redisUrl, name, leaseMs, executes }: EnginePlace): Promise<void> {
  app = await createApp({
    name: "bench",
    adapters: [
      bullmqEngine({ leaseMs, executes, parkAfterMs: Number.POSITIVE_INFINITY }),
      postgresRecords({ url: postgresUrl, schema: name }),
      ioredisServer({ url: redisUrl, prefix: name }),
      redisBus(),
      hmacSigning({ key: new Secret("a key for tests") }),
      systemClock(),
      memoryTelemetry({}),
    ],
  });
  engine = app.port(ports.engine);
  bus = app.port(ports.bus);
  bus.subscribe(`bench/${own}`, { received: (id) => whenDone.get(String(id))?.(), missed() {} });
  engine.define("here", run, { onInterrupted: "resume", begins: "here" });
  engine.define("anywhere", run, { onInterrupted: "resume", begins: "anywhere" });
  engine.define("hold", hold, { onInterrupted: "resume", begins: "here", concurrency: 1000 });
  await engine.ready();
}

async function load({ kind, runs, clients, until }: Extract<EngineJob, { do: "load" }>): Promise<EngineAnswer> {
  const took: number[] = [];
  let left = runs;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      // A client is told the end of a run only if it waits for it.
      const id = `${own}-${++works}${until === "finished" ? "-waits" : ""}`;
      const { promise, resolve } = Promise.withResolvers<void>();
      if (until === "finished") whenDone.set(id, resolve);
      const at = now();
      await engine.start(kind, id, { at: works });
      if (until === "finished") await promise;
      took.push(now() - at);
      whenDone.delete(id);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return { took };
}

async function answer(job: EngineJob): Promise<EngineAnswer> {
  switch (job.do) {
    case "open":
      await open(job);
      return {};
    case "load":
      return load(job);
    case "count":
      return { ended, foreign };
    case "hold": {
      const ids = Array.from({ length: job.runs }, () => `${own}-${++works}`);
      await Promise.all(ids.map((id) => engine.start("hold", id, {})));
      return { ids };
    }
    case "signal":
    case "cancel": {
      const at = now();
      await (job.do === "signal" ? engine.signal(job.id, "word", "go") : engine.cancel(job.id, "bench"));
      return { at };
    }
    case "held":
      return { began: Object.fromEntries(began), heard: Object.fromEntries(heard) };
    case "close":
      await app.close();
      return {};
  }
}

// Timers of the clock do not keep a process alive.
setInterval(() => {}, 1000);
process.on("message", async (job: EngineJob) => process.send?.(await answer(job)));
