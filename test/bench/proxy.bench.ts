/**
 * Measures what the model proxy costs: `npm run bench:proxy`, about three minutes; `-- --quick` takes 40 seconds and is less exact. With
 * `-- --beside FOLDER`, the proxy of another checkout takes part. The benchmark starts its own upstream. In one run it measures direct
 * calls, nginx, a bare pass-through of node:http and undici, and the proxy, each in its own process. test/bench/results/proxy.md explains the
 * report.
 */
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startWorker } from "./proxy/child.ts";
import { startField } from "./proxy/contestants.ts";
import type { LoadJob, LoadResult } from "./proxy/load.ts";
import { MIXED_CASES, type MixedResult, runMixed } from "./proxy/mixed.ts";
import { canPin, pin } from "./proxy/pin.ts";
import { race } from "./proxy/race.ts";
import { mixedTable, type Race, raceTable, verdicts } from "./proxy/report.ts";
import { assertSound } from "./proxy/sound.ts";
import type { UploadJob, UploadResult } from "./proxy/upload.ts";
import type { Kind } from "./proxy/workload.ts";

const KINDS: readonly Kind[] = ["plain", "stream"];
const CONCURRENCIES = [1, 32, 256];
const { values: flags } = parseArgs({ options: { quick: { type: "boolean" }, beside: { type: "string" } } });
const isQuick = flags.quick === true;
const effort = isQuick
  ? { rounds: 2, ms: 300, warmMs: 300, uploads: 1, quietMs: 300 }
  : { rounds: 5, ms: 650, warmMs: 4000, uploads: 2, quietMs: 1000 };

const dir = mkdtempSync(join(tmpdir(), "portico-bench-"));
const log = openSync(join(dir, "stderr.log"), "a");
console.log(
  `node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"}), ${effort.rounds} rounds, ${canPin ? "contestants on a core of their own" : "all on the same cores"}\n`,
);
const load = startWorker<LoadJob, LoadResult>(new URL("./proxy/load.ts", import.meta.url));
const uploader = startWorker<UploadJob, UploadResult>(new URL("./proxy/upload.ts", import.meta.url));
pin("load", load.pid, uploader.pid, process.pid);
const field = await startField(dir, log, flags.beside && resolve(flags.beside));

const races: Race[] = [];
for (const kind of KINDS) {
  for (const contestant of field.contestants) await assertSound(contestant, kind);
  await race(field.contestants, load, { kind, connections: 32, rounds: 1, ms: effort.warmMs });
  for (const connections of CONCURRENCIES) {
    const standings = await race(field.contestants, load, { kind, connections, rounds: effort.rounds, ms: effort.ms });
    races.push({ kind, connections, standings });
    console.log(`${raceTable(races.at(-1)!)}\n`);
  }
}
const mixed: MixedResult[] = [];
const host = { dir, upstream: field.upstream, log, load, uploader, times: effort.uploads, quietMs: effort.quietMs };
for (const each of MIXED_CASES) mixed.push(await runMixed(each, host));
console.log(`${mixedTable(mixed)}\n`);
console.log(verdicts(races, mixed).join("\n"));

await field.stop();
await Promise.all([load.stop(), uploader.stop()]);
rmSync(dir, { recursive: true });
