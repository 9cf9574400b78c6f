import { hmacSigning } from "@portico/adapters/signing/hmac";
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { redisBus } from "@portico/cluster/bus/redis";
import { systemClock } from "@portico/adapters/clock/system";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports, Secret } from "@portico/core";
import { type Answer, KINDS, type Request, type Script, type Told, type ToldHappening, type WorkPlace } from "../cluster-work.ts";

// One of several processes that share works. The test kills it, freezes it, and breaks its connections. It performs the requests of its
// parent process, and appends events to a file.
const { life, postgresUrl, schema, redisUrl, prefix, leaseMs, happened } = JSON.parse(process.argv[2]!) as WorkPlace;
const file = openSync(happened, "a");
const tell = (happening: ToldHappening): void =>
  void writeSync(file, `${JSON.stringify({ life, at: clock.now(), ...happening })}\n`);

const telemetry = createMemoryTelemetry({
  onError(message, _fields, cause) {
    if (message.startsWith("This process was not heard of")) tell({ is: "lost" });
    else if (!message.startsWith("The engine's journal is out of reach"))
      tell({ is: "error", message: `${message}: ${String(cause)}` });
  },
});
let clock: Pick<ports.Clock, "now"> = Date;
const app = await createApp({
  name: "chaos",
  adapters: [
    bullmqEngine({ leaseMs }),
    postgresRecords({ url: postgresUrl, schema }),
    ioredisServer({ url: redisUrl, prefix, commandTimeoutMs: 1000 }),
    redisBus(),
    hmacSigning({ key: new Secret("a key for tests") }),
    systemClock(),
    memoryTelemetry({ telemetry }),
  ],
});
clock = app.port(ports.clock);
const engine = app.port(ports.engine);
const records = app.port(ports.records);
const collections = {
  accepted: records.collection<{ by: string }>({ name: "accepted" }),
  held: records.collection<{ by: string }>({ name: "held" }),
};

let executions = 0;

async function work(context: ports.WorkContext, { deeds }: Script): Promise<Told> {
  const { id } = context;
  const execution = `${life}-${++executions}`;
  tell({ is: "began", id, execution });
  try {
    await writeHeld(context, execution);
    const answers: unknown[] = [];
    for (const [deed, each] of deeds.entries()) {
      const answer = await perform(context, `${deed}`, each);
      tell({ is: "passed", id, deed, answer });
      answers.push(answer);
    }
    await writeHeld(context, execution);
    return { execution, answers };
  } finally {
    tell({ is: "left", id, execution });
  }
}

async function perform({ id, step, sleep: rest, waitFor }: ports.WorkContext, name: string, deed: Script["deeds"][number]) {
  if (deed.is === "wait") return (await waitFor(deed.name, deed.ms === undefined ? {} : { timeoutMs: deed.ms })) ?? null;
  if (deed.is === "sleep") return rest(name, deed.ms).then(() => null);
  const { ms, repeatable } = deed;
  const run = async (): Promise<number> => {
    tell({ is: "ran", id, step: name });
    await sleep(ms);
    return Math.random();
  };
  return step(name, run, { repeatable }).catch((error: unknown) => {
    if (error instanceof ports.StepInterrupted) return "interrupted";
    throw error;
  });
}

/** A batch that no execution writes after the work was given to another execution. */
async function writeHeld({ id, held, signal }: ports.WorkContext, by: string): Promise<void> {
  const batch = [collections.held.write.put(id, { by }), held];
  for (;;) {
    try {
      return await records.batch(batch);
    } catch (error) {
      if (!(error instanceof ports.RecordsUnavailable)) throw error;
      await sleep(50, undefined, { signal });
    }
  }
}

for (const [kind, options] of Object.entries(KINDS)) {
  const closed = async (id: string): Promise<void> => tell({ is: "closed", id });
  engine.define<Script, Told>(kind, work, options.onInterrupted === "close" ? { ...options, closed } : options);
}
engine.chore("tally", { everyMs: 200 }, async (signal) => {
  tell({ is: "chore began" });
  await sleep(30, undefined, { signal }).catch(() => {});
  tell({ is: "chore ended" });
});

async function answer(request: Request): Promise<unknown> {
  if (request.is === "close") return app.close();
  if (request.is === "start") {
    const { kind, id, key, script } = request;
    return engine.start(kind, id, script, { key, records: [collections.accepted.write.put(id, { by: life })] });
  }
  if (request.is === "signal") return engine.signal(request.id, request.name, request.payload);
  if (request.is === "cancel") return engine.cancel(request.id, "enough");
  if (request.is === "status") return engine.status(request.id);
  return (await collections[request.collection].get(request.id))?.value.by;
}

process.on("message", ({ call, request }: { call: number; request: Request }) => {
  const reply = (answered: Answer): void => {
    process.send?.({ call, ...answered });
    // Nothing else keeps the process alive then: it ends by itself.
    if (request.is === "close") process.disconnect();
  };
  answer(request).then(
    (answered) => reply({ answer: answered ?? null }),
    (error: unknown) => reply({ error: error instanceof Error ? error.name : "unknown" }),
  );
});

await engine.ready();
process.send?.("ready");
