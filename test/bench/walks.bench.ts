/**
 * Counts the source files and functions that an action passes: `npm run bench:walks`, some seconds. The preset `local` runs in this
 * process. After a first time, each action is done until V8's coverage counts the same number of files twice: other work of the process may run at
 * the same time. Code that runs only when a file is loaded is not counted.
 * `--files` prints the files. `test/rooms/walks.test.ts` has the limits.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { Session } from "node:inspector/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { connectAgent } from "@portico/client";
import { type App, createApp } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import { local, readPlatformOptions } from "@portico/presets/local";
import { startFakeUpstream } from "../harness/fake-upstream.ts";

const OWNER = "owner-token-0123456789";
const WORKFLOW = "workflow-token-0123456789";
const root = pathToFileURL(resolve(import.meta.dirname, "../..")).href;
const SOURCE = /^\/(?:core|adapters|plugins|client|presets)(?:\/[\w-]+)?\/src\//;

const MOST_TIMES = 6;

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

const folder = mkdtempSync(join(tmpdir(), "portico-bench-walks-"));
const upstream = await startFakeUpstream();
try {
  write("agents/helper/agent.json", { name: "Helper", provider: "messages", model: "echo-large" });
  write("workflows/greet.json", {
    name: "Greet",
    parameters: { type: "object" },
    nodes: { hello: { type: "transform", name: "Hello", with: { value: "Hello" } } },
  });
  let instances = 0;
  await walk("`createApp(local)`", async () => {
    const app = await platform(String(instances++));
    return () => app.close();
  });
  const app = await platform("served");
  const server = createServer(toNodeHandler(app.surface("agent")));
  const attached = attach(server, app.surface("agent"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const others = await Promise.all(
    (["proxy", "workflow"] as const).map(async (name) => {
      const other = createServer(toNodeHandler(app.surface(name))).listen(0, "127.0.0.1");
      await once(other, "listening");
      return other;
    }),
  );
  const [agent, proxy, workflow] = [server, ...others].map(
    (each) => `http://127.0.0.1:${(each.address() as AddressInfo).port}`,
  ) as [string, string, string];
  await walkRequests({ agent, proxy, workflow });
  for (const each of [server, ...others]) {
    each.close();
    each.closeAllConnections();
  }
  attached.close();
  await app.close();
} finally {
  await upstream.close();
  rmSync(folder, { recursive: true });
}

async function walkRequests({ agent, proxy, workflow }: Readonly<Record<"agent" | "proxy" | "workflow", string>>) {
  const owner = { "x-agent-service-token": OWNER, "content-type": "application/json" };
  const tokenOf = async (providerId: string) => {
    const issued = await call(`${agent}/api/safe-tokens`, { method: "POST", headers: owner, body: { providerId } });
    return issued.token as string;
  };
  const chat = { model: "echo-large", messages: [{ role: "user", content: "Hello" }] };
  const messages = { ...chat, max_tokens: 100 };
  for (const [name, provider, stream] of [
    ["a same-protocol call", "messages", false],
    ["a converted call", "chat", false],
    ["a converted stream", "chat", true],
  ] as const) {
    const headers = { "x-api-key": await tokenOf(provider), "content-type": "application/json" };
    await walk(name, () => call(`${proxy}/v1/messages`, { method: "POST", headers, body: { ...messages, stream } }, "text"));
  }

  const event = { promptTemplate: "Look at {{title}}", toolIds: [] };
  const path = `${agent}/api/agents/helper/webhooks/events/work`;
  const { secret } = await call(path, { method: "PUT", headers: owner, body: event });
  const ended = async () => {
    const { runs } = await call(`${agent}/api/runs?limit=200`, { headers: owner });
    return runs.filter(({ status }: { status: string }) => status === "completed").length as number;
  };
  let deliveries = 0;
  await walk("a webhook to its run's end", async () => {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
    const body = { event: "work", payload: { title: "the broken build" } };
    await call(`${agent}/api/webhook/helper`, { method: "POST", headers, body });
    deliveries++;
    // Asking whether the run has ended would add to the count, so it is asked afterwards.
    await wait(3_000);
    return async () => {
      if ((await ended()) !== deliveries) throw new Error("The run has not ended within three seconds");
    };
  });

  const service = { "x-workflow-service-token": WORKFLOW, "content-type": "application/json" };
  await walk("a trigger to its run's end", async () => {
    const { runId } = await call(`${workflow}/api/workflow/webhook?id=greet`, { method: "POST", headers: service, body: {} });
    await call(`${workflow}/api/workflow/events?runId=${runId}`, { headers: service }, "text");
  });

  await using client = connectAgent({ baseURL: agent, token: OWNER });
  await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
  await walk("a query to its receipt, with the client", async () => {
    await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
    const { runs } = await call(`${agent}/api/runs?limit=1`, { headers: owner });
    await call(`${agent}/api/runs/${runs[0].run_id}/receipt`, { headers: owner });
  });
}

async function platform(name: string): Promise<App> {
  const options = await readPlatformOptions(
    {
      dataDir: join(folder, name),
      log: { level: "error" },
      providers: (["messages", "chat"] as const).map((id) => ({
        id,
        protocol: id === "chat" ? "chat-completions" : id,
        baseUrl: upstream.baseUrl,
        credential: "sk-provider-key-0123456789abcdef",
        models: ["echo-large"],
      })),
      agent: { agentsDir: join(folder, "agents"), tokens: [{ token: OWNER, userId: "owner", role: "owner" }] },
      workflow: { definitionsDir: join(folder, "workflows"), token: WORKFLOW },
    },
    { env: {} },
  );
  return createApp(local(options));
}

async function walk(name: string, act: () => Promise<unknown>): Promise<void> {
  await undo(await act());
  await wait(300);
  let entered = await entering(act);
  for (let isTwice = false, times = 1; !isTwice && times < MOST_TIMES; times++) {
    const next = await entering(act);
    isTwice = next.length === entered.length;
    if (next.length < entered.length) entered = next;
  }
  if (process.argv.includes("--files"))
    console.log(
      entered
        .map(({ url }) => url.slice(root.length + 1))
        .sort()
        .join("\n"),
    );
  console.log(`${name}: ${entered.length} files, ${entered.reduce((sum, { calls }) => sum + calls, 0)} functions`);
}

/** The files that an action enters, and the functions that it calls there. */
async function entering(act: () => Promise<unknown>): Promise<readonly { readonly url: string; readonly calls: number }[]> {
  await session.post("Profiler.takePreciseCoverage");
  const undoing = await act();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  await undo(undoing);
  return result
    .filter(({ url }) => url.startsWith(root) && SOURCE.test(url.slice(root.length)))
    .map(({ url, functions }) => ({ url, calls: functions.filter(({ ranges }) => ranges.some(({ count }) => count > 0)).length }))
    .filter(({ calls }) => calls > 0);
}

async function undo(undoing: unknown): Promise<void> {
  if (typeof undoing === "function") await undoing();
}

interface Sent {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

async function call(url: string, { method = "GET", headers, body }: Sent, as: "json" | "text" = "json"): Promise<any> {
  const answer = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return as === "json" ? answer.json() : answer.text();
}

function write(path: string, value: unknown): void {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), JSON.stringify(value));
}
