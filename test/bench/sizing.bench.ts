/**
 * How much memory and disk a service needs: `npm run bench:sizing`, about five minutes. One preset `local`, in a process of its own, as
 * `portico start` runs it, with the offline model and another provider that never finishes an answer. Memory is what the process needs more
 * after a full garbage collection. Disk is how much the data directory grows, measured while the service is stopped.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { type AgentClient, connectAgent } from "@portico/client";
import { png } from "../harness/media-samples.ts";
import { type PorticoProcess, startPortico } from "../harness/portico-process.ts";
import { cpuOf } from "./proxy/child.ts";
import { openUpstream } from "./sizing/upstream.ts";

const COUNT = 3_000;
/** Turns and runs that execute at the same time. */
const LIVE = 200;
const AT_ONCE = 20;
/** Work that is done before memory and processor time are measured. */
const WARM = 100;
const FILE_BYTES = 10_000;
/** Characters of the texts of people and agents. */
const QUESTION = "What is new? ".repeat(15).slice(0, 200);

const OWNER = "owner-0123456789";
const FLOW = "flow-0123456789";
/** The first bytes of an image. Its media type is detected from them. */
const FILE = new Uint8Array(FILE_BYTES);
FILE.set(png(4, 3));
/** The secret of the agent's webhook. The service shows it only once. */
let secret: string | undefined;

/** Performs an action this many times, and waits until all of them have ended. */
type Run = (count: number) => Promise<unknown>;

const folder = mkdtempSync(join(tmpdir(), "portico-bench-sizing-"));
const upstream = await openUpstream();
prepareFolder(upstream.baseUrl);

const rows: [what: string, value: string][] = [];
const note = (what: string, value: string) => {
  rows.push([what, value]);
  console.log(`| ${what} | ${value} |`);
};
console.log(
  `node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"}), load ${loadavg()[0]!.toFixed(1)}\n`,
);

let service = await start();
const atRest = await memory();
note("a service without work, in use", mib(atRest.used));
note("a service without work, resident", mib(atRest.resident));
await stop();

// The first action of each kind loads code, fills caches and creates tables. It is not counted.
const kinds: { readonly what: string; readonly run: Run; readonly count?: number; readonly less?: number }[] = [
  { what: "a call of the model proxy", run: proxyCalls() },
  { what: "a query in a new conversation", run: turns("helper") },
  { what: "the next query of a conversation", run: followUps() },
  { what: "a query with one call of a tool", run: turns("caller") },
  { what: "a webhook event", run: webhookEvents() },
  { what: "a workflow run with one `transform` node", run: workflowRuns("short") },
  { what: "a workflow run that waits at a gate", run: workflowRuns("gate") },
  { what: "an attachment", run: uploads("attachments", "text/plain"), count: 100, less: FILE_BYTES },
  { what: "a medium", run: uploads("media/upload", "image/png"), count: 1_000, less: FILE_BYTES },
];
const memoryRows: [string, string][] = [];
const cpuRows: [string, string][] = [];
for (const { what, run, count = COUNT, less = 0 } of kinds) {
  service = await start();
  await run(AT_ONCE);
  await stop();
  const before = diskBytes();
  service = await start();
  await run(WARM);
  const [memoryBefore, cpuBefore, logBefore] = [await memory(), cpuOf(service.pid) ?? 0, service.stderr().length];
  await run(count);
  const [cpu, log] = [(cpuOf(service.pid) ?? 0) - cpuBefore, service.stderr().length - logBefore];
  const filled = await memory();
  if (less === 0) await run(count);
  const memoryAfter = await memory();
  await stop();
  const stored = WARM + (less === 0 ? 2 * count : count);
  note(`${what}, disk${less > 0 ? " beside its bytes" : ""}`, bytes((diskBytes() - before) / stored - less));
  note(`${what}, log`, bytes(log / count));
  if (less === 0) {
    memoryRows.push([`${what}, once it has ended, the first ${count}, in use`, bytes((filled.used - memoryBefore.used) / count)]);
    memoryRows.push([`${what}, once it has ended, the next ${count}, in use`, bytes((memoryAfter.used - filled.used) / count)]);
  }
  cpuRows.push([what, `${Math.round(cpu / count)}`]);
}
for (const [what, value] of memoryRows) note(what, value);

const lives: { readonly what: string; readonly begin: Begin }[] = [
  { what: "a turn of an agent that waits for its model", begin: liveTurns },
  { what: "a call of the proxy whose answer streams", begin: liveCalls },
  { what: "a workflow run whose model node waits", begin: liveWorkflows },
];
for (const { what, begin } of lives) {
  service = await start();
  const end = await begin(AT_ONCE);
  await sleep(1_000);
  const before = await memory();
  const endAll = await begin(LIVE);
  await sleep(3_000);
  const after = await memory();
  note(`${what}, in use`, kib((after.used - before.used) / LIVE));
  note(`${what}, resident`, kib((after.resident - before.resident) / LIVE));
  await endAll();
  await end();
  await stop();
}
console.log("\nprocessor time of the service | CPU µs");
for (const [what, value] of cpuRows) console.log(`| ${what} | ${value} |`);
upstream[Symbol.dispose]();
rmSync(folder, { recursive: true });
process.exit(0);

function prepareFolder(baseUrl: string): void {
  const write = (path: string, content: unknown) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(content));
  };
  write("portico.config.json", {
    providers: [{ id: "main", protocol: "messages", baseUrl, credential: "a-key", models: ["quick", "slow"] }],
    agent: { tokens: [{ token: OWNER, userId: "owner", role: "owner" }] },
    workflow: { token: FLOW },
    shutdownGraceMs: 0,
  });
  write("agents/helper/agent.json", { name: "Helper", instructions: "Answer." });
  write("agents/caller/agent.json", { name: "Caller", tools: ["SendUserMessage"] });
  write("agents/slow/agent.json", { name: "Slow", model: "slow" });
  const parameters = { type: "object", properties: { text: { type: "string" } } };
  const definition = (name: string, node: object) => ({ name, parameters, nodes: { only: node } });
  write("workflows/short.json", definition("Short", { type: "transform", with: { value: "${{ parameters.text }}" } }));
  write("workflows/gate.json", definition("Gate", { type: "human_gate", with: { title: "Go on?" } }));
  const slow = { type: "model", with: { provider: "main", model: "slow", prompt: "${{ parameters.text }}" } };
  write("workflows/slow.json", definition("Slow", slow));
}

/** The process of the service writes its memory into a file when it gets a signal. */
function start(): Promise<PorticoProcess> {
  const before = `
    import { renameSync, writeFileSync } from "node:fs";
    import { setFlagsFromString } from "node:v8";
    import { runInNewContext } from "node:vm";
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc");
    process.on("SIGUSR2", () => {
      for (let round = 0; round < 3; round++) gc();
      const { heapUsed, external, rss } = process.memoryUsage();
      writeFileSync("memory.json.new", JSON.stringify({ used: heapUsed + external, resident: rss }));
      renameSync("memory.json.new", "memory.json");
    });`;
  return startPortico({ cwd: folder, before, hasOwnProcess: true });
}

async function stop(): Promise<void> {
  const code = await service.stop();
  if (code !== 0) throw new Error(`The service ended with ${code}: ${service.stderr().slice(-2_000)}`);
}

async function memory(): Promise<{ readonly used: number; readonly resident: number }> {
  const file = join(folder, "memory.json");
  // Waits for timers and buffers of ended work.
  await sleep(2_000);
  rmSync(file, { force: true });
  service.signal("SIGUSR2");
  while (!existsSync(file)) await sleep(20);
  return JSON.parse(readFileSync(file, "utf8")) as { used: number; resident: number };
}

/** The bytes of the data directory, without pages of the store that are free for new data. */
function diskBytes(): number {
  const dataDir = join(folder, ".portico");
  const entries = readdirSync(dataDir, { recursive: true, withFileTypes: true });
  const files = entries.reduce((sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0), 0);
  using store = new DatabaseSync(join(dataDir, "records.sqlite"), { readOnly: true });
  const pragma = (name: string) => Number(Object.values(store.prepare(`PRAGMA ${name}`).get()!)[0]);
  return files - pragma("freelist_count") * pragma("page_size");
}

/** Run a job this many times, at most `AT_ONCE` at a time. */
async function repeat(count: number, job: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await job(next++);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, lane));
}

async function post(url: string, headers: Record<string, string>, body: object | FormData): Promise<any> {
  const isForm = body instanceof FormData;
  const answer = await fetch(url, {
    method: "POST",
    headers: { ...headers, ...(isForm ? {} : { "content-type": "application/json" }) },
    body: isForm ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}

function proxyCalls(): Run {
  return async (count) => {
    const token = await service.token("main");
    const body = { model: "quick", max_tokens: 100, messages: [{ role: "user", content: QUESTION }] };
    await repeat(count, () => post(`${service.url("proxy")}/messages`, { "x-api-key": token }, body));
  };
}

function turns(agentId: string): Run {
  return async (count) => {
    await using client = connect();
    await repeat(count, () => ask(client, { agentId, prompt: QUESTION }));
  };
}

/** Queries of conversations with ten queries each. */
function followUps(): Run {
  return async (count) => {
    await using client = connect();
    let conversations: string[] = [];
    await repeat(count, async (at) => {
      const conversationId = at < AT_ONCE ? undefined : conversations[at % conversations.length];
      const started = await ask(client, { agentId: "helper", prompt: QUESTION, ...(conversationId && { conversationId }) });
      if (at < AT_ONCE) conversations = [...conversations, started];
    });
  };
}

function connect(): AgentClient {
  return connectAgent({ baseURL: service.url("agent"), token: OWNER });
}

async function ask(client: AgentClient, query: Parameters<AgentClient["submit"]>[0]): Promise<string> {
  const asked = client.submit(query);
  const { status } = await asked.ended;
  if (status !== "completed") throw new Error(`A query ended as ${status}`);
  return (await asked.started)!.conversationId!;
}

function webhookEvents(): Run {
  return async (count) => {
    const agent = service.url("agent");
    const headers = { "x-agent-service-token": OWNER };
    const saved = await fetch(`${agent}/api/agents/helper/webhooks/events/news`, {
      method: "PUT",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ promptTemplate: "{{text}}", toolIds: [] }),
    });
    secret ??= ((await saved.json()) as { secret: string }).secret;
    const authorization = `Bearer ${secret}`;
    const event = { event: "news", payload: { text: QUESTION } };
    await repeat(count, () => post(`${agent}/api/webhook/helper`, { authorization }, event));
    await idle();
  };
}

function workflowRuns(id: string): Run {
  return async (count) => {
    const url = `${service.url("workflow")}/api/workflow/webhook?id=${id}`;
    await repeat(count, () => post(url, { "x-workflow-service-token": FLOW }, { text: QUESTION }));
    await idle();
  };
}

function uploads(path: string, type: string): Run {
  return (count) =>
    repeat(count, async () => {
      const form = new FormData();
      form.set("file", new File([FILE], `${randomUUID()}.${type.split("/")[1]}`, { type }));
      await post(`${service.url("agent")}/api/${path}`, { "x-agent-service-token": OWNER }, form);
    });
}

/** Accepted work continues in the background: waits until the service needs almost no processor time for two seconds. */
async function idle(): Promise<void> {
  for (let quiet = 0, before = cpuOf(service.pid) ?? 0; quiet < 4;) {
    await sleep(500);
    const now = cpuOf(service.pid) ?? 0;
    quiet = now - before < 25_000 ? quiet + 1 : 0;
    before = now;
  }
}

/** Begins this many actions, and returns a function that ends them. */
type Begin = (count: number) => Promise<() => Promise<unknown>>;

async function liveTurns(count: number): Promise<() => Promise<unknown>> {
  const client = connect();
  await Promise.all(Array.from({ length: count }, () => client.submit({ agentId: "slow", prompt: QUESTION }).started));
  return async () => client.close();
}

async function liveCalls(count: number): Promise<() => Promise<unknown>> {
  const token = await service.token("main");
  const stopping = new AbortController();
  const body = JSON.stringify({ model: "slow", max_tokens: 9, stream: true, messages: [{ role: "user", content: QUESTION }] });
  const headers = { "x-api-key": token, "content-type": "application/json" };
  const call = () => fetch(`${service.url("proxy")}/messages`, { method: "POST", headers, body, signal: stopping.signal });
  await Promise.all(Array.from({ length: count }, call));
  return async () => stopping.abort();
}

async function liveWorkflows(count: number): Promise<() => Promise<unknown>> {
  await workflowRuns("slow")(count);
  return async () => {};
}

function mib(count: number): string {
  return `${(count / 1024 / 1024).toFixed(0)} MiB`;
}

function kib(count: number): string {
  return `${(count / 1024).toFixed(1)} KiB`;
}

function bytes(count: number): string {
  return `${Math.round(count).toLocaleString("en")} bytes`;
}
