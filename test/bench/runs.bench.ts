/**
 * Measures reading and finding runs and receipts: `npm run bench:runs`, about ten minutes, most of them for filling the stores. One agent
 * service in this process has 1,000,000 runs, and 100,000 receipts in one run. The report has the p50 of the HTTP answer for the newest 50
 * runs, with every set of filters, and for searches. It has the same with 30,000 runs, so that growth is visible. It also has the time for a page
 * of the console's list, after a restart of the service. `npm run bench:runs -- search` measures only searches, and `-- list` only the list. With `postgres`, the service is a process of a cluster, on the PostgreSQL and Redis that tests use.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { ports } from "@portico/core";
import { createRuns, type Run } from "../../plugins/src/conversations-runs/runs/runs.ts";
import { Pool } from "undici";
import { type AgentService, startAgentService, TOKENS } from "../harness/agent-app.ts";
import { type AskPage, measureLists, printLists } from "./opened-list.ts";
import { clusterServers, createAgentCluster } from "../harness/agent-cluster.ts";

/** PostgreSQL is filled with about 1,000 runs per second. */
const SIZES = process.argv.includes("postgres") ? [30_000, 200_000] : [30_000, 1_000_000];
const RECEIPTS = [12_000, 100_000];
const CALLS = 300;
/** Number of runs in one commit. */
const GROUP = 500;
const AGENTS = 19;

const filters = { agent_id: "agent-3", delegated_by: "agent-1", parent_run_id: "run_parent7" };
const sets = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => Object.entries(filters).filter((_, at) => bits & (1 << at)));

/** Searches of the owner, unless they name another user. One of 50 runs failed, one of 1,000 has a rare word. */
const searches = [
  ["", "everything"],
  ["q=usual", "a word of all"],
  ["q=kestrel", "a word of one in 1,000"],
  ["q=usual+title+kestrel", "three words, one of them rare"],
  ["q=quota", "a word of errors"],
  ["status=failed", "status failed"],
  ["status=failed&q=usual+title", "status failed, two words of all"],
  ["status=idle&agent_id=agent-3&q=usual", "status idle, agent, a word of all"],
  ["agent_id=agent-3&user_id=member&q=length", "agent, user, a word of all"],
  ["started_from=2023-11-15&started_before=2023-11-16&q=usual", "a day, a word of all"],
  [
    "started_from=2023-11-15&started_before=2023-11-16&status=failed&agent_id=agent-3&q=usual",
    "a day, status failed, agent, a word of all",
  ],
  ["status=running&q=usual", "status running, a word of all: none"],
  ["status=completed&q=usual+title", "status completed, two words of all: none, the most work of one call"],
] as const;
const isList = process.argv.includes("list");
const isSearch = process.argv.includes("search") || isList;
/** The console leaves archived runs out. */
const lists = [
  ["archived=false", "opens the list"],
  ["archived=false&status=failed", "status failed"],
  ["archived=false&q=usual&agent_id=agent-3", "a word of all, agent"],
  ["archived=false&q=kestrel&status=failed", "a rare word, status failed: finds none"],
  ["archived=false&started_from=2023-11-15&started_before=2023-11-16&user_id=member", "a day, user"],
  ["archived=false&background=true", "background runs: finds none, the most calls of one page"],
] as const;
const servers = process.argv.includes("postgres") ? await clusterServers() : undefined;
if (process.argv.includes("postgres") && !servers) throw new Error("No PostgreSQL or no Redis server answers");

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);
const rows = new Map<string, number[]>();
const note = (name: string, p50: number) => rows.set(name, [...(rows.get(name) ?? []), p50]);
for (const [at, size] of SIZES.entries()) {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-runs-"));
  const telemetry = openTelemetry({ level: "silent", format: "json" });
  const bytesBefore = servers ? await servers.database.size() : 0;
  const cluster = servers && createAgentCluster(servers);
  const start = () => (cluster ? cluster.start({ telemetry }) : startAgentService({ dataDir, telemetry }));
  let service = await start();
  await fillRuns(service, size);
  // As in a store that has been there for a while: PostgreSQL does this by itself, in its own time.
  await servers?.database.query("VACUUM ANALYZE");
  if (!cluster) {
    // The first call finds nothing in the memory of its process.
    await service.close();
    service = await start();
  }
  const pool = new Pool(service.url, { connections: 1 });
  const ask: AskPage = async (query) => {
    const begun = performance.now();
    const path = `/api/runs/search?${query}`;
    const { statusCode, body } = await pool.request({ path, method: "GET", headers: { "x-agent-service-token": TOKENS.owner } });
    const text = await body.text();
    const ms = performance.now() - begun;
    if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}`);
    const { runs, next, previous } = JSON.parse(text) as { runs: unknown[]; next?: string; previous?: string };
    return { rows: runs, next, previous, ms };
  };
  printLists(size, await measureLists(ask, lists, "after"));
  await pool.close();
  for (const [query, name] of isList ? [] : searches)
    note(`search: ${name}`, await time(service, "owner", `/api/runs/search?${query}`, undefined));
  for (const query of isList ? [] : ["q=usual", "status=failed&q=usual"])
    note(`search of a member: ${query}`, await time(service, "member", `/api/runs/search?${query}`, "runs"));
  if (!isSearch) await fillReceipts(service, RECEIPTS[at]!);
  for (const holder of isSearch ? [] : (["owner", "member"] as const)) {
    for (const set of sets) {
      const query = new URLSearchParams(set).toString();
      const found = await time(service, holder, `/api/runs?${query}`, "runs");
      note(`runs of the ${holder}${set.length > 0 ? ` by ${set.map(([name]) => name).join(", ")}` : ""}`, found);
    }
  }
  for (const [name, query] of isSearch
    ? []
    : ([
        ["newest 20 receipts", "?limit=20"],
        ["20 receipts, 10,000 back", "?offset=10000"],
      ] as const)) {
    note(name, await time(service, "owner", `/api/runs/run_many/receipt${query}`, "receipts"));
  }
  const bytes = servers ? (await servers.database.size()) - bytesBefore : statSync(join(dataDir, "records.sqlite")).size;
  await (cluster ? cluster[Symbol.asyncDispose]() : service.close());
  console.log(`${size} runs: ${Math.round(bytes / size)} bytes of records per run`);
  rmSync(dataDir, { recursive: true });
}
await servers?.database.drop();
if (rows.size > 0)
  console.log(
    `\nHTTP answer, p50 ms | ${SIZES.map((size, at) => `${size} runs, ${RECEIPTS[at]} receipts`).join(" | ")} | growth`,
  );
for (const [name, times] of rows) {
  console.log(`${name} | ${times.map((time) => time.toFixed(2)).join(" | ")} | ${(times[1]! / times[0]!).toFixed(2)}`);
}

async function fillRuns(service: AgentService, count: number): Promise<void> {
  const runs = createRuns(service.app.port(ports.records));
  for (let from = 0; from < count; from += GROUP) {
    await runs.writeAll(Array.from({ length: GROUP }, (_, at) => runs.begin(runAt(from + at))).flat());
  }
}

function runAt(at: number): Run {
  const started = new Date(1_700_000_000_000 + at * 1000).toISOString();
  return {
    run_id: `run_${at.toString(36).padStart(9, "0")}`,
    user_id: at % 3 === 0 ? "member" : "owner",
    agent_id: `agent-${at % AGENTS}`,
    started_at: started,
    status: at % 50 === 0 ? "failed" : "idle",
    ...(at % 50 === 0 && {
      failure_reason: "error",
      failure: { code: "model_refused", message: "The quota of this key is used up" },
    }),
    conversation_id: `conv_${at}`,
    session_id: `ses_${at}`,
    updatedAt: started,
    title: `Run number ${at}, with a title of usual length${at % 1000 === 1 ? ": kestrel" : ""}`,
    messageCount: 4,
    // One of five runs was delegated. The numbers have no common divisor, so that every set of filters finds some runs.
    ...(at % 5 === 0 && {
      delegation: { fromAgentId: `agent-${at % 7}`, parentRunId: `run_parent${at % 11}`, mode: "wait" },
    }),
  };
}

async function fillReceipts(service: AgentService, count: number): Promise<void> {
  const run = { ...runAt(0), run_id: "run_many", user_id: "owner" };
  const runs = createRuns(service.app.port(ports.records));
  await runs.writeAll(runs.begin(run));
  const log = service.app.port(ports.log);
  for (let from = 0; from < count; from += GROUP) {
    await log.appendAll(
      Array.from({ length: Math.min(GROUP, count - from) }, (_, at) => ({
        stream: "receipts/run_many",
        entry: {
          receipt_id: `rcp_${from + at}`,
          run_id: "run_many",
          goal: "A question of usual length, as people ask them",
          input: "A question of usual length, as people ask them",
          output: "An answer. ".repeat(20),
          tool_calls: [],
          outcome: { status: "success", auto_completed: true },
          started_at: run.started_at,
          completed_at: run.started_at,
        },
      })),
    );
  }
}

/** `key`: a list of the answer that must not be empty. */
async function time(service: AgentService, holder: "owner" | "member", path: string, key: string | undefined): Promise<number> {
  const pool = new Pool(service.url, { connections: 1 });
  const times: number[] = [];
  for (let call = 0; call < CALLS; call++) {
    const begun = performance.now();
    const { statusCode, body } = await pool.request({
      path,
      method: "GET",
      headers: { "x-agent-service-token": TOKENS[holder] },
    });
    const text = await body.text();
    times.push(performance.now() - begun);
    const isEmpty = key !== undefined && (JSON.parse(text) as Record<string, unknown[]>)[key]?.length === 0;
    if (call === 0 && (statusCode !== 200 || isEmpty)) {
      throw new Error(`${path} answered ${statusCode} with nothing`);
    }
  }
  await pool.close();
  return times.sort((a, b) => a - b)[CALLS / 2]!;
}
