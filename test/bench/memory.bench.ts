/**
 * How much memory a busy service holds: `npm run bench:memory`, about two minutes. The preset `local` runs in a process of its own, as
 * `portico start` runs it. It gets requests of all kinds at a fixed rate: calls of the model proxy, streams, workflow triggers, webhook
 * events, queries, lists.
 *
 * - `-- --beside ../other-checkout`: another checkout is measured in the same run, in turns.
 * - `-- --rate 300 --seconds 30 --rounds 1`: other numbers.
 * - `-- --node-flag=--max-semi-space-size=4`: a flag of Node.js for the service. Can be repeated.
 */
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { cpuOf, startChild } from "./proxy/child.ts";
import { type MixedService, openMixedLoad } from "./memory/mixed-load.ts";
import { openUpstream } from "./sizing/upstream.ts";

const OWNER = "owner-0123456789";
const FLOW = "flow-0123456789";

const { values: given } = parseArgs({
  options: {
    beside: { type: "string" },
    rate: { type: "string", default: "600" },
    seconds: { type: "string", default: "60" },
    rounds: { type: "string", default: "1" },
    "node-flag": { type: "string", multiple: true, default: [] },
  },
});
const [rate, seconds, rounds] = [Number(given.rate), Number(given.seconds), Number(given.rounds)];
const checkouts: [name: string, folder: string][] = [["this", resolve(import.meta.dirname, "../..")]];
if (given.beside) checkouts.push(["other", resolve(given.beside)]);

/** What a process holds, in MiB. */
interface Held {
  readonly resident: number;
  /** Resident memory that is not a file. */
  readonly anonymous: number;
  /** What V8 has reserved for its heap, and what is used of that. */
  readonly heap: number;
  readonly heapUsed: number;
  /** Contained in `heap`: objects that are younger than two collections. */
  readonly young: number;
  readonly external: number;
  readonly threads: number;
}

const upstream = await openUpstream();
console.log(
  `node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"}), load ${loadavg()[0]!.toFixed(1)}`,
);
console.log(`${rate} requests/s for ${seconds} s\n`);
console.log(
  "checkout | moment | resident MiB | anonymous | heap | heap in use | young | external | threads | CPU µs per request",
);
for (let round = 0; round < rounds; round++) for (const [name, folder] of checkouts) await measure(name, folder);
upstream[Symbol.dispose]();
process.exit(0);

async function measure(name: string, checkout: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portico-bench-memory-"));
  const config = prepareFolder(folder, upstream.baseUrl);
  const program = join(checkout, "presets/cli/portico.mjs");
  const flags = [...given["node-flag"], "--import", preload(folder)];
  const log = openSync(join(folder, "log"), "a");
  const child = await startChild(
    process.execPath,
    [...flags, program, "start", "local", "--config", config, "--json"],
    log,
    folder,
  );
  const { listeners } = child.ready as { listeners: Record<string, { url: string }> };
  const url = (surface: string) => listeners[surface]!.url;
  const row = async (moment: string, then: "keep" | "collect", cpu?: number) => {
    const held = await heldBy(child.pid, folder, then);
    const { resident, anonymous, heap, heapUsed, young, external, threads } = held;
    const cells = [
      ...[resident, anonymous, heap, heapUsed, young, external].map((mib) => mib.toFixed(0)),
      threads,
      cpu?.toFixed(0) ?? "",
    ];
    console.log(`${name} | ${moment} | ${cells.join(" | ")}`);
  };
  await sleep(5_000);
  await row("at rest", "keep");
  const service: MixedService = {
    ...{ program, config, owner: OWNER, flow: FLOW },
    ...{ proxy: url("proxy"), workflow: url("workflow"), agent: url("agent") },
  };
  const load = await openMixedLoad(service);
  const samples = 4;
  let done = 0;
  for (let at = 1; at <= samples; at++) {
    const before = cpuOf(child.pid)!;
    const sent = await load.run(rate, (seconds * 1000) / samples);
    done += sent;
    await row(`after ${((seconds / samples) * at).toFixed(0)} s`, "keep", (cpuOf(child.pid)! - before) / sent);
  }
  await load.close();
  console.log(`  ${(done / seconds).toFixed(0)} requests/s were answered: ${load.counts()}`);
  await sleep(15_000);
  await row("15 s later", "keep");
  await row("collected", "collect");
  await child.stop();
  rmSync(folder, { recursive: true, force: true });
}

function prepareFolder(folder: string, baseUrl: string): string {
  const write = (path: string, content: unknown) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(content));
  };
  write("portico.config.json", {
    dataDir: join(folder, ".portico"),
    providers: [{ id: "main", protocol: "messages", baseUrl, credential: "a-key", models: ["quick", "slow"] }],
    agent: { tokens: [{ token: OWNER, userId: "owner", role: "owner" }] },
    workflow: { token: FLOW },
    shutdownGraceMs: 0,
  });
  write("agents/helper/agent.json", { name: "Helper", instructions: "Answer." });
  write("workflows/short.json", {
    name: "Short",
    parameters: { type: "object", properties: { text: { type: "string" } } },
    nodes: { only: { type: "transform", with: { value: "${{ parameters.text }}" } } },
  });
  return join(folder, "portico.config.json");
}

/** A module that the service loads first: it writes what V8 holds into a file when the process gets a signal. */
function preload(folder: string): string {
  const source = `
    import { renameSync, writeFileSync } from "node:fs";
    import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
    import { runInNewContext } from "node:vm";
    const write = () => {
      const { heapTotal, heapUsed, external } = process.memoryUsage();
      const young = getHeapSpaceStatistics().filter((each) => each.space_name.startsWith("new_"));
      const youngTotal = young.reduce((sum, each) => sum + each.physical_space_size, 0);
      writeFileSync(${JSON.stringify(join(folder, "held.new"))}, JSON.stringify({ heapTotal, heapUsed, external, young: youngTotal }));
      renameSync(${JSON.stringify(join(folder, "held.new"))}, ${JSON.stringify(join(folder, "held"))});
    };
    process.on("SIGUSR2", write);
    process.on("SIGWINCH", () => {
      setFlagsFromString("--expose-gc");
      const gc = runInNewContext("gc");
      for (let round = 0; round < 3; round++) gc();
      write();
    });`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

async function heldBy(pid: number, folder: string, then: "keep" | "collect"): Promise<Held> {
  const file = join(folder, "held");
  rmSync(file, { force: true });
  process.kill(pid, then === "collect" ? "SIGWINCH" : "SIGUSR2");
  while (!existsSync(file)) await sleep(5);
  const v8 = JSON.parse(readFileSync(file, "utf8")) as Record<"heapTotal" | "heapUsed" | "external" | "young", number>;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]);
  const mib = (bytes: number) => bytes / 1024 / 1024;
  return {
    ...{ resident: kib("VmRSS") / 1024, anonymous: kib("RssAnon") / 1024 },
    ...{ heap: mib(v8.heapTotal), heapUsed: mib(v8.heapUsed), young: mib(v8.young), external: mib(v8.external) },
    threads: readdirSync(`/proc/${pid}/task`).length,
  };
}
