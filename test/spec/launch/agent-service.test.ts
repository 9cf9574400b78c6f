import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAgent, type Query } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type PorticoProcess, type StartOptions, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { chatEvents } from "../../harness/stream-scripts.ts";
import { events } from "../../harness/upstream-answers.ts";

let folder: ReturnType<typeof temporaryFolder>;
let upstream: FakeUpstream;
beforeEach(async () => {
  folder = temporaryFolder();
  upstream = await startFakeUpstream();
  agent("helper", { name: "Helper" });
});
afterEach(async () => {
  await upstream.close();
  folder.remove();
});

function agent(id: string, definition: object): void {
  mkdirSync(join(folder.path, "agents", id), { recursive: true });
  writeFileSync(join(folder.path, "agents", id, "agent.json"), JSON.stringify(definition));
}

const start = (preset: string, config: object = {}, more: StartOptions = {}) =>
  startPortico({ ...more, cwd: folder.path, args: [preset], config: { shutdownGraceMs: 100, ...config } });
/** For tests that send signals. */
const startAlone = (config: object = {}) => start("agent", { ...withUpstream(), ...config }, { hasOwnProcess: true });
const client = (service: PorticoProcess) =>
  connectAgent({
    baseURL: service.url("agent"),
    token: (JSON.parse(service.read("credentials.json")) as { agentServiceToken: string }).agentServiceToken,
  });
const withUpstream = () => ({
  providers: [{ id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] }],
});

async function textOf(query: Query): Promise<string> {
  let text = "";
  for await (const { delta } of query) text += delta ?? "";
  return text;
}

it("agent.context of the configuration counts for all agents, and context of an agent.json for one of them", async () => {
  agent("marked", { name: "Marked", context: { promptCache: true } });
  const providers = [{ id: "main", protocol: "messages", baseUrl: upstream.baseUrl, models: ["echo-large"] }];
  await using service = await start("agent", { providers, agent: { context: { promptCache: false } } });
  await using own = client(service);
  for (const agentId of ["helper", "marked"]) await own.submit({ agentId, prompt: "hello" }).ended;
  const bodies = await Promise.all(upstream.requests.map(async (request) => (await request.bytes()).toString()));
  expect(bodies.map((body) => body.includes("cache_control"))).toEqual([false, true]);
});

describe.each(["local", "agent"])("portico start %s", (preset) => {
  it("plays agents from agentsDir with the offline model; one that appears is there without a restart", async () => {
    await using service = await start(preset);
    expect(Object.keys(service.ready.listeners)).toEqual(preset === "local" ? ["proxy", "workflow", "agent"] : ["agent"]);
    await using own = client(service);
    expect(await textOf(own.submit({ agentId: "helper", prompt: "Hello" }))).toBe(
      "You said: Hello (This is the offline demo model.)",
    );
    agent("late", { name: "Late" });
    await expect
      .poll(async () => (await own.calls.agents()).agents.map(({ id }) => id), { timeout: 30_000 })
      .toEqual(["helper", "late"]);
    expect((await own.submit({ agentId: "late", prompt: "x" }).ended).status).toBe("completed");
    const { capabilities } = await own.calls.handshake();
    expect(capabilities).toMatchObject({
      realtime: true,
      safeTokens: true,
      media: true,
      attachments: true,
      webhookManagement: true,
    });
  });
});

it("an event that is saved and triggered over HTTP is worked on, and what the agent delivers is listed", async () => {
  await using service = await start("local");
  const token = (JSON.parse(service.read("credentials.json")) as { agentServiceToken: string }).agentServiceToken;
  const owner = { "x-agent-service-token": token, "content-type": "application/json" };
  const call = async (method: string, path: string, headers: Record<string, string>, body?: object) => {
    const answer = await fetch(service.url("agent") + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, body: (await answer.json()) as any };
  };
  const event = { promptTemplate: "SendUserMessage: {{version}} is there", toolIds: ["SendUserMessage"] };
  const { secret } = (await call("PUT", "/api/agents/helper/webhooks/events/deploy", owner, event)).body;
  const bearer = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const trigger = { event: "deploy", payload: { version: "1.2" } };
  expect(await call("POST", "/api/webhook/helper", bearer, trigger)).toEqual({
    status: 200,
    body: { accepted: true, agentId: "helper", event: "deploy" },
  });
  await expect
    .poll(async () => (await call("GET", "/api/agents/helper/schedule-messages", owner)).body.items, { timeout: 30_000 })
    .toEqual([
      expect.objectContaining({ displayName: "deploy", delivery: { message: "SendUserMessage: 1.2 is there", attachments: [] } }),
    ]);
});

it("agent.webhooks.management false: the handshake says so, and management is refused (4.3, 9)", async () => {
  await using service = await start("agent", { agent: { webhooks: { management: false } } });
  await using own = client(service);
  expect((await own.calls.handshake()).capabilities.webhookManagement).toBe(false);
  const token = (JSON.parse(service.read("credentials.json")) as { agentServiceToken: string }).agentServiceToken;
  const answer = await fetch(`${service.url("agent")}/api/agents/helper/webhooks`, {
    headers: { "x-agent-service-token": token },
  });
  expect([answer.status, await answer.json()]).toEqual([403, { error: "webhook_management_unavailable" }]);
});

it("instance.mode remote: an agent without a secret is not triggered, with any token (5, rule 4)", async () => {
  agent("open", { name: "Open", webhooks: { enabled: true, events: { deploy: { promptTemplate: "x", toolIds: [] } } } });
  const trigger = async (service: PorticoProcess) => {
    const token = (JSON.parse(service.read("credentials.json")) as { agentServiceToken: string }).agentServiceToken;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ event: "deploy" });
    return (await fetch(`${service.url("agent")}/api/webhook/open`, { method: "POST", headers, body })).status;
  };
  {
    await using local = await start("agent");
    expect(await trigger(local)).toBe(200);
  }
  await using remote = await start("agent", { instance: { mode: "remote" } });
  expect(await trigger(remote)).toBe(403);
});

describe("a service that stops or is killed (open points 1 and 9)", () => {
  const half = chatEvents("one two three").slice(0, 3);

  it("SIGTERM marks the turn that does not finish in time, tells its client, and exits with 0", async () => {
    upstream.answerAll(events([...half, new Promise(() => {})]));
    const service = await startAlone();
    await using own = client(service);
    const query = own.submit({ agentId: "helper", prompt: "Hello" });
    for await (const { delta } of query) {
      expect(delta).toBe("one");
      break;
    }
    expect(await service.stop()).toBe(0);
    expect(await query.ended).toMatchObject({
      status: "interrupted",
      terminal: { reason: "system_suspension", partial: expect.stringMatching(/^one/) },
    });
  });

  it("SIGTERM lets a turn finish that does in time, and its client hears the end", async () => {
    const gate = Promise.withResolvers<void>();
    const script = chatEvents("one two three");
    upstream.answerAll(events([...script.slice(0, 3), gate.promise, ...script.slice(3)] as never));
    const service = await startAlone({ shutdownGraceMs: 10_000 });
    await using own = client(service);
    const query = own.submit({ agentId: "helper", prompt: "Hello" });
    const iterator = query[Symbol.asyncIterator]();
    await iterator.next();
    service.signal("SIGTERM");
    await expect.poll(() => service.stderr()).toContain("Stopping");
    gate.resolve();
    expect(await query.ended).toMatchObject({ status: "completed", result: { output: "one two three" } });
    expect((await service.exited).code).toBe(0);
  });

  it("after SIGKILL the turn is closed with what it had said, and the session goes on", async () => {
    upstream.answerNext(events([...half, new Promise(() => {})]));
    const killed = await startAlone();
    const first = client(killed);
    const query = first.submit({ agentId: "helper", prompt: "Hello" });
    const { sessionId, runId } = (await query.started)!;
    const iterator = query[Symbol.asyncIterator]();
    await iterator.next();
    // What was said is written down at the latest a tenth of a second later; the run's status tells that time passes.
    await first.calls.run({ params: { id: runId! } });
    killed.signal("SIGKILL");
    await killed.exited;
    first.close();

    await using service = await startAlone();
    await using own = client(service);
    expect(await own.calls.run({ params: { id: runId! } })).toMatchObject({
      status: "failed",
      failure_reason: "process_restart",
    });
    expect((await own.submit({ agentId: "helper", sessionId, prompt: "And now?" }).ended).status).toBe("completed");
    expect(upstream.requests).toHaveLength(2);
  });
});

it("a page of a foreign origin cannot use the calls or the channel", async () => {
  await using service = await start("agent", { agent: { allowedOrigins: ["https://desk.example"] } });
  const ask = async (path: string, origin: string) => {
    const answer = await fetch(`${service.url("agent")}${path}`, { headers: { origin } });
    return [answer.status, ((await answer.json().catch(() => ({}))) as { error?: string }).error];
  };
  for (const path of ["/api/agents", "/socket.io/?EIO=4&transport=polling", "/healthz"]) {
    expect([path, ...(await ask(path, "https://evil.example"))]).toEqual([path, 403, "origin_not_allowed"]);
  }
  expect(await ask("/api/agents", "https://desk.example")).toEqual([401, "unauthorized"]);
});
