import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@portico/adapters/clock/system";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports } from "@portico/core";

// A process of its own, with its garbage collector at hand: it has many works wait, and says how many executions of theirs it holds: when all
// wait, and, of an engine that parks, when all are parked.
const [path = "", parkAfterMs = ""] = process.argv.slice(2);
const WORKS = 1000;

const app = await createApp({
  name: "holds",
  adapters: [sqliteRecords({ path }), embeddedEngine({ parkAfterMs: Number(parkAfterMs) }), systemClock(), memoryTelemetry({})],
});
const engine = app.port(ports.engine);
const contexts: WeakRef<ports.WorkContext>[] = [];
engine.define(
  "waits",
  async (context) => {
    contexts.push(new WeakRef(context));
    await Promise.all([context.sleep("nap", 3_600_000), context.waitFor("word")]);
  },
  { onInterrupted: "resume" },
);
await engine.ready();
const ids = Array.from({ length: WORKS }, (_, at) => `work-${at}`);
await Promise.all(ids.map((id) => engine.start("waits", id, {})));
while (contexts.length < WORKS) await sleep(5);

const isParked = async (): Promise<boolean> =>
  (await Promise.all(ids.map((id) => engine.status(id)))).every((status) => status?.state === "waiting");
if (Number.isFinite(Number(parkAfterMs))) while (!(await isParked())) await sleep(5);
// An object that a promise or a WeakRef has used lives until the end of its turn of the event loop.
const held = () => contexts.filter((context) => context.deref()).length;
const turns = Number.isFinite(Number(parkAfterMs)) ? 500 : 5;
for (let turn = 0; turn < turns && held() > 0; turn++) {
  await sleep(5);
  globalThis.gc!();
}
process.stdout.write(`${held()}`);
await app.close();
