/**
 * Measures what the engine port costs: `npm run bench:engine`, about a minute. One process runs the embedded engine in the file of the
 * records: first works of five durable steps that do nothing, 50 at a time, then works of five short sleeps. The report has the processor
 * time beside the rate, because the speed of a disk varies.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@portico/adapters/clock/system";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, ports } from "@portico/core";

const IN_FLIGHT = 50;
const ROUND = 4000;
const ROUNDS = 9;

const folder = mkdtempSync(join(tmpdir(), "portico-bench-engine-"));
const app = await createApp({
  name: "bench",
  adapters: [sqliteRecords({ path: join(folder, "store.db") }), embeddedEngine({}), systemClock(), memoryTelemetry({})],
});
const engine = app.port(ports.engine);
const whenDone = new Map<string, () => void>();
const done = (id: string): void => whenDone.get(id)?.();

const NOTHING = async (): Promise<void> => {};
const steps = async (context: ports.WorkContext): Promise<void> => {
  for (let at = 0; at < 5; at++) await context.step(`step ${at}`, NOTHING);
  done(context.id);
};
const naps = async (context: ports.WorkContext): Promise<void> => {
  for (let at = 0; at < 5; at++) await context.sleep(`nap ${at}`, 1);
  done(context.id);
};
engine.define("steps", steps, { onInterrupted: "resume" });
engine.define("naps", naps, { onInterrupted: "resume" });
await engine.ready();

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})`);
// Timers of the port `clock` do not keep a process alive.
const alive = setInterval(() => {}, 1000);
let works = 0;
for (const [kind, count] of [
  ["steps", ROUND],
  ["naps", ROUND / 4],
] as const) {
  await round(kind, count);
  const rounds: Round[] = [];
  for (let at = 0; at < ROUNDS; at++) rounds.push(await round(kind, count));
  const best = Math.max(...rounds.map(({ rate }) => rate));
  const [rate, micros] = [median(rounds.map((each) => each.rate)), median(rounds.map((each) => each.micros))];
  console.log(
    `${kind}: ${Math.round(rate)} works/s, best ${Math.round(best)}; ${Math.round(micros)} microseconds of processor each`,
  );
}
clearInterval(alive);
await app.close();
rmSync(folder, { recursive: true });

interface Round {
  /** Works per second. */
  readonly rate: number;
  /** Of processor time per work. */
  readonly micros: number;
}

async function round(kind: string, count: number): Promise<Round> {
  const [began, used] = [performance.now(), process.cpuUsage()];
  let left = count;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const id = `work-${++works}`;
      const { promise, resolve } = Promise.withResolvers<void>();
      whenDone.set(id, resolve);
      await engine.start(kind, id, { at: works });
      await promise;
      whenDone.delete(id);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  const { user, system } = process.cpuUsage(used);
  return { rate: (count / (performance.now() - began)) * 1000, micros: (user + system) / count };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
