import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@portico/adapters/clock/system";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports } from "@portico/core";

// Runs in its own process, which the test kills. Its work waits for signals, is parked and comes back, and it reports every event. With
// `finish` it accepts no work, and sends signals until all work has ended.
const [path = "", life = "", happened = "", finish] = process.argv.slice(2);
const said = openSync(happened, "a");
const say = (...words: (string | number)[]) => writeSync(said, `${words.join(" ")}\n`);

const WORDS = 6;

const app = await createApp({
  name: "chaos",
  adapters: [sqliteRecords({ path }), embeddedEngine({ parkAfterMs: 5 }), systemClock(), memoryTelemetry({})],
});
const engine = app.port(ports.engine);

/** Who executes in this process. */
const executing = new Set<string>();
engine.define(
  "asks",
  async (context) => {
    const { id } = context;
    if (executing.has(id)) say("beside", id);
    executing.add(id);
    context.signal.addEventListener("abort", () =>
      say(context.signal.reason instanceof ports.WorkParked ? "parked" : "stopped", id),
    );
    try {
      const words: unknown[] = [];
      for (let at = 0; at < WORDS; at++) {
        words.push(await context.waitFor(`word-${at % 2}`));
        await context.step(`answer-${at}`, async () => void say("answered", id, at), { repeatable: true });
        await context.sleep(`nap-${at}`, Math.random() * 20);
      }
      return words;
    } finally {
      // Work that ends on request sometimes ends later.
      if (Math.random() < 0.3) await sleep(Math.random() * 5);
      executing.delete(id);
    }
  },
  { onInterrupted: "resume", concurrency: 16 },
);
await engine.ready();

/** Signals that no earlier life can have sent, each with a number that is higher than those before it. */
let number = Number(life) * 1_000_000;
async function signalOnce(id: string, name: string): Promise<boolean> {
  const payload = ++number;
  const isKept = await engine.signal(id, name, payload);
  if (isKept) say("signalled", id, name, payload);
  return isKept;
}

async function acceptOn(writer: number): Promise<void> {
  for (let at = 0; ; at++) {
    const id = `work-${life}-${writer}-${at}`;
    await engine.start("asks", id, {});
    say("accepted", id);
    // Some works are left waiting for later lives.
    for (let word = 0; word < Math.random() * (WORDS + 2); word++) {
      await sleep(Math.random() * 20);
      await signalOnce(id, `word-${word % 2}`);
    }
  }
}

if (finish) {
  const finishWork = async (id: string): Promise<void> => {
    while ((await engine.status(id))?.endedAt === undefined) {
      await Promise.all(["word-0", "word-1"].map((name) => signalOnce(id, name)));
      await sleep(20);
    }
    const { state, output } = (await engine.status(id))!;
    say("ended", id, state, JSON.stringify(output));
  };
  await Promise.all(finish.split(",").map(finishWork));
  await app.close();
} else {
  for (let writer = 0; writer < 16; writer++) void acceptOn(writer);
  process.send?.("working");
}
