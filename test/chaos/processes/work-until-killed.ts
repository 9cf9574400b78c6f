import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@portico/adapters/clock/system";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports } from "@portico/core";

// Runs in its own process, which the test kills. It accepts work and executes it, and immediately reports every event. With `finish` it
// accepts no work, and ends when no work is left.
const [path = "", life = "", happened = "", finish] = process.argv.slice(2);
const said = openSync(happened, "a");
const say = (...words: (string | number)[]) => writeSync(said, `${words.join(" ")}\n`);

const app = await createApp({
  name: "chaos",
  adapters: [sqliteRecords({ path }), embeddedEngine({}), systemClock(), memoryTelemetry({})],
});
const engine = app.port(ports.engine);
let open = 0;

async function work(context: ports.WorkContext): Promise<void> {
  const { id } = context;
  open++;
  say("began", id);
  for (const name of ["a", "b", "c"]) {
    const run = async () => {
      say("ran", id, name);
      await sleep(Math.random());
    };
    try {
      await context.step(name, run, { repeatable: name === "b" });
    } catch (error) {
      if (!(error instanceof Error && error.name === "StepInterrupted")) throw error;
    }
    say("passed", id, name);
  }
  open--;
}
engine.define("resumed", work, { onInterrupted: "resume" });
engine.define("closed", work, { onInterrupted: "close", closed: async (id) => void say("closed", id) });
await engine.ready();

async function acceptOn(writer: number): Promise<void> {
  const kind = writer % 2 ? "resumed" : "closed";
  for (let at = 0; ; at++) {
    const id = `${kind}-${life}-${writer}-${at}`;
    await engine.start(kind, id, { at }, { key: `${kind}-${writer}` });
    say("accepted", id);
    await sleep(4);
  }
}

if (finish) {
  const ids = finish.split(",");
  while ((await Promise.all(ids.map((id) => engine.status(id)))).some((status) => status?.endedAt === undefined) || open > 0)
    await sleep(20);
  for (const id of ids) say("ended", id, (await engine.status(id))!.state);
  await app.close();
} else {
  for (let writer = 0; writer < 16; writer++) void acceptOn(writer);
  process.send?.("working");
}
