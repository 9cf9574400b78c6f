/**
 * Measures finding and removing workflow runs: `npm run bench:workflow-runs`, about fifteen minutes, most of them for filling the stores. One
 * workflow service in this process has 1,000,000 ended runs of ten workflows. The report has the p50 of the HTTP answer of searches and of the
 * versions of a workflow. It has the same with 30,000 runs, so that growth is visible. Then the retention removes the oldest 100,000 runs, while
 * a caller triggers runs one after another. It also has the time for a page of the console's list, after a restart of the service. `npm run
 * bench:workflow-runs -- 200000` fills the larger store with this number of runs, and `-- list` measures only the list. `--
 * files` measures only the removal of 600 runs with one to three files each, in a few seconds. With `postgres`, the service is a process of a
 * cluster, on the PostgreSQL and Redis that tests use, with smaller stores.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { ports } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { Pool } from "undici";
import { newFileId } from "../../plugins/src/workflow-service/files/run-files.ts";
import { ledgerStream } from "../../plugins/src/workflow-service/runs/ledger-entry.ts";
import { endedRun, type RunRecord } from "../../plugins/src/workflow-service/runs/run-record.ts";
import { createRunRecords } from "../../plugins/src/workflow-service/runs/run-records.ts";
import { createSweep } from "../../plugins/src/workflow-service/service/sweep-runs.ts";
import { type AskPage, measureLists, printLists } from "./opened-list.ts";
import { clusterServers, sharedStores } from "../harness/agent-cluster.ts";
import { SERVICE_TOKEN, startWorkflowService, type WorkflowService } from "../harness/workflow-app.ts";

const isPostgres = process.argv.includes("postgres");
const most = Number(process.argv.find((each) => /^\d+$/.test(each)) ?? (isPostgres ? 200_000 : 1_000_000));
const SIZES = [30_000, most];
const CALLS = 300;
/** Number of runs in one commit. */
const GROUP = 500;
const WORKFLOWS = 10;
/** As many runs as the retention has to remove in a day of an instance with 100,000 runs a day. */
const REMOVED = isPostgres ? 20_000 : 100_000;
const RUNS_WITH_FILES = 600;
const FIRST_MS = Date.UTC(2023, 10, 15);
const headers = { "x-workflow-service-token": SERVICE_TOKEN };
const versions = ["a", "b", "c"].map((letter) => letter.repeat(64));

/** One of 50 runs failed, one of 1,000 has a rare word. The values of `order` are all different, `region` has four. */
const searches = [
  ["", "everything"],
  ["workflowId=w3", "a workflow"],
  ["workflowId=w3&status=failed", "a workflow, status `failed`"],
  ["status=failed", "status `failed`"],
  ["q=quota", "a word of errors"],
  ["q=kestrel", "a word of one run in 1,000"],
  ["q=quota+kestrel&status=failed", "status `failed`, two words, one of them rare"],
  ["parameter=order%3DA-1234", "a parameter that one run has"],
  ["workflowId=w3&parameter=region%3Dnorth", "a workflow, a parameter of a quarter of the runs"],
  ["parameter=region%3Dnorth&output=result%3Dlate", "a parameter, and an output of one run in 100: finds no run"],
  ["startedFrom=2023-11-15&startedBefore=2023-11-16&workflowId=w3", "a day, a workflow"],
  [`version=${versions[1]}`, "an older version of the workflow"],
  ["workflowId=w3&status=running", "a workflow, status `running`: finds no run"],
  ["workflowId=w9&status=completed&version=" + versions[2], "a workflow, status `completed`, a version of many workflows"],
] as const;

if (process.argv.includes("files")) {
  await measureFiles();
  process.exit();
}
const isList = process.argv.includes("list");
const lists = [
  ["", "opens the list"],
  ["workflowId=w3", "a workflow"],
  ["status=failed", "status failed"],
  ["workflowId=w3&parameter=region%3Dnorth", "a workflow, a parameter of a quarter of all runs, but of none of its own"],
  ["startedFrom=2023-11-15&startedBefore=2023-11-16&status=failed", "a day, status failed"],
  ["userId=nobody", "a user without runs: the most calls of one page"],
] as const;

const servers = isPostgres ? await clusterServers() : undefined;
if (isPostgres && !servers) throw new Error("No PostgreSQL or no Redis server answers");

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);
const rows = new Map<string, number[]>();
const note = (name: string, value: number) => rows.set(name, [...(rows.get(name) ?? []), value]);
for (const size of SIZES) {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-workflow-runs-"));
  const telemetry = openTelemetry({ level: "silent", format: "json" });
  const bytesBefore = servers ? await servers.database.size() : 0;
  const stores = servers && sharedStores(servers.newPlace);
  const shared = () => (servers && stores ? { shared: stores(servers.database.url) } : {});
  const start = () => startWorkflowService({ dataDir, definitions: definitions(), telemetry, ...shared() });
  const filled = await start();
  const begun = performance.now();
  await fill(filled, size);
  console.log(`${size} runs: filled with ${Math.round((size * 1000) / (performance.now() - begun))} runs/s`);
  // As in a store that has been there for a while: PostgreSQL does this by itself, in its own time.
  await servers?.database.query("VACUUM ANALYZE");
  // The first call finds nothing in the memory of its process.
  await filled.close();
  const service = await start();
  const runtime = service.app.port(workflowRuntime);
  const { runs } = runtime;
  const pool = new Pool(service.url, { connections: 1 });
  const ask: AskPage = async (query) => {
    const sent = performance.now();
    const path = `/api/workflow/runs/search?${query}`;
    const { statusCode, body } = await pool.request({ path, method: "GET", headers });
    const text = await body.text();
    const ms = performance.now() - sent;
    if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}`);
    const { runs: found, next, previous } = JSON.parse(text) as { runs: unknown[]; next?: string; previous?: string };
    return { rows: found, next, previous, ms };
  };
  printLists(size, await measureLists(ask, lists, "cursor"));
  await pool.close();
  if (isList) {
    await service.close();
    rmSync(dataDir, { recursive: true });
    continue;
  }
  const signal = new AbortController().signal;
  for (const [query, name] of searches) note(name, await time(service, `/api/workflow/runs/search?${query}`));
  for (const coding of ["identity", "gzip", "br"])
    note(`200 runs, content coding ${coding}`, await time(service, "/api/workflow/runs/search?limit=200", CALLS, coding));
  note("the versions of a workflow, before its runs are counted", await time(service, "/api/workflow/w3/versions", 1));
  for (let at = 0; at < WORKFLOWS; at++) await runs.use.count(`w${at}`, Date.now(), signal);
  note("the versions of a workflow", await time(service, "/api/workflow/w3/versions"));
  const bytes = servers ? (await servers.database.size()) - bytesBefore : statSync(join(dataDir, "records.sqlite")).size;
  console.log(`${size} runs: ${Math.round(bytes / size)} bytes of records per run`);
  // The service itself keeps runs forever, so that it removes none while the store is filled and searched.
  const sweep = createSweep({
    ...runtime,
    ...{
      eventLog: service.app.port(ports.log),
      clock: service.app.port(ports.clock),
      log: service.app.port(ports.telemetry).log,
    },
    keepMs: Date.now() - (FIRST_MS + REMOVED * 1000),
  });
  await measureSweep(service, Math.min(size, REMOVED), () => sweep(signal));
  await service.close();
  rmSync(dataDir, { recursive: true });
}
await servers?.database.drop();
if (rows.size > 0) console.log(`\nHTTP answer, p50 ms | ${SIZES.map((size) => `${size} runs`).join(" | ")} | growth`);
for (const [name, times] of rows) {
  console.log(`${name} | ${times.map((each) => each.toFixed(2)).join(" | ")} | ${(times[1]! / times[0]!).toFixed(2)}`);
}

function definitions() {
  const one = {
    parameters: { type: "object", properties: { order: {}, region: {} } },
    search: { parameters: ["order", "region"], outputs: ["result"] },
    nodes: { a: { type: "transform", with: { value: 1 } } },
    outputs: { result: "done" },
  };
  return Object.fromEntries(Array.from({ length: WORKFLOWS }, (_, at) => [`w${at}.json`, { ...one, name: `Workflow ${at}` }]));
}

async function fill(service: WorkflowService, count: number): Promise<void> {
  const records = service.app.port(ports.records);
  const log = service.app.port(ports.log);
  const runs = createRunRecords(records);
  for (let from = 0; from < count; from += GROUP) {
    const group = Array.from({ length: Math.min(GROUP, count - from) }, (_, at) => runAt(from + at, count));
    const entries = group.map(({ runId }) => ({
      stream: ledgerStream(runId),
      entry: {
        from: 0,
        entries: [{ kind: "end", nodeId: "a", type: "transform", status: "completed", attempts: 1, outputs: 1 }],
      },
    }));
    await log.appendAll(entries, { records: group.flatMap((run) => runs.begin(run)) });
    // Without the record of open runs, which the end of a run removes.
    await records.batch(group.map(({ runId }) => records.collection({ name: "workflow-open-runs" }).write.remove(runId)));
  }
}

function runAt(at: number, count: number): RunRecord {
  const started = FIRST_MS + at * 1000;
  const isFailed = at % 50 === 0;
  const run: RunRecord = {
    ...{
      runId: `wrun_${started.toString(36).padStart(9, "0")}x`,
      workflowId: `w${at % WORKFLOWS}`,
      name: "Workflow",
      instance: "i",
    },
    ...{ nodeCount: 1, completedNodeCount: 1, status: "running", startedAt: new Date(started).toISOString() },
    definition: versions[Math.floor((at * versions.length) / count)]!,
    fields: { parameters: { order: `A-${at}`, region: ["north", "south", "east", "west"][at % 4]! } },
  };
  return endedRun(run, {
    ...{ status: isFailed ? "failed" : "completed", at: started + 100, completedNodeCount: 1 },
    ...(isFailed && {
      error: { code: "http_429", message: `The quota is used up${at % 1000 === 0 ? ": kestrel" : ""}`, nodeId: "a" },
    }),
    ...(!isFailed && { outputFields: { result: at % 100 === 1 ? "late" : "done" } }),
  });
}

/** How fast the histories and files of removed runs are removed. */
async function measureFiles(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-workflow-runs-"));
  const telemetry = openTelemetry({ level: "silent", format: "json" });
  const service = await startWorkflowService({ dataDir, definitions: definitions(), telemetry });
  const runtime = service.app.port(workflowRuntime);
  const signal = new AbortController().signal;
  await fill(service, RUNS_WITH_FILES);
  const ids = service.app.port(ports.ids);
  const bytes = Buffer.alloc(10_000, "a");
  for (let at = 0; at < RUNS_WITH_FILES; at++) {
    for (let file = 0; file <= at % 3; file++)
      await runtime.files!.save(runAt(at, RUNS_WITH_FILES).runId, newFileId(ids), {
        source: Readable.from([bytes]),
        about: { name: "file", mediaType: "text/plain" },
        ...{ savedBy: "a#1", maxBytes: bytes.length, held: [], signal, refuse: () => undefined },
      });
  }
  const sweep = createSweep({
    ...runtime,
    ...{
      eventLog: service.app.port(ports.log),
      clock: service.app.port(ports.clock),
      log: service.app.port(ports.telemetry).log,
      keepMs: 1,
    },
  });
  await sweep(signal);
  const begun = performance.now();
  await sweep(signal);
  const seconds = (performance.now() - begun) / 1000;
  console.log(`${RUNS_WITH_FILES} runs with one to three files: removed with ${Math.round(RUNS_WITH_FILES / seconds)} runs/s`);
  await service.close();
  rmSync(dataDir, { recursive: true });
}

/** How fast old runs are removed, and how long triggers take meanwhile. */
async function measureSweep(service: WorkflowService, size: number, sweep: () => Promise<void>): Promise<void> {
  const pool = new Pool(service.url, { connections: 1 });
  const trigger = async (): Promise<number> => {
    const begun = performance.now();
    const { statusCode, body } = await pool.request({
      path: "/api/workflow/webhook?id=w1",
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: "{}",
    });
    await body.dump();
    if (statusCode !== 200) throw new Error(`A trigger was answered with ${statusCode}`);
    return performance.now() - begun;
  };
  const quantile = (times: readonly number[], part: number) => times.toSorted((a, b) => a - b)[Math.floor(times.length * part)]!;
  const measure = async (isOver: () => boolean): Promise<readonly number[]> => {
    const times: number[] = [];
    while (!isOver()) times.push(await trigger());
    return times;
  };
  let left = 500;
  const alone = await measure(() => left-- === 0);
  for (const [what, of] of [
    ["runs", "removed from the lists"],
    ["histories", "removed"],
  ]) {
    let isOver = false;
    const begun = performance.now();
    const swept = sweep().finally(() => (isOver = true));
    const during = await measure(() => isOver);
    await swept;
    const seconds = (performance.now() - begun) / 1000;
    console.log(
      `${size} ${what} ${of}: ${Math.round(size / seconds)}/s; ${during.length} triggers meanwhile, ` +
        `p50 ${quantile(during, 0.5).toFixed(2)} ms, p99 ${quantile(during, 0.99).toFixed(2)} ms ` +
        `(alone: p50 ${quantile(alone, 0.5).toFixed(2)} ms, p99 ${quantile(alone, 0.99).toFixed(2)} ms)`,
    );
  }
  await pool.close();
}

async function time(service: WorkflowService, path: string, calls = CALLS, coding?: string): Promise<number> {
  const pool = new Pool(service.url, { connections: 1 });
  const times: number[] = [];
  for (let call = 0; call < calls; call++) {
    const begun = performance.now();
    const accepted = coding === undefined ? {} : { "accept-encoding": coding };
    const { statusCode, body } = await pool.request({ path, method: "GET", headers: { ...headers, ...accepted } });
    const { byteLength } = await body.arrayBuffer();
    times.push(performance.now() - begun);
    if (call === 0 && coding !== undefined) console.log(`${path}, ${coding}: ${byteLength} bytes`);
    if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}`);
  }
  await pool.close();
  return times.sort((a, b) => a - b)[Math.floor(calls / 2)]!;
}
