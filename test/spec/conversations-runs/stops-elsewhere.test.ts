// Several processes of one instance: what one of them asks of turns that another one executes.
import { defineAdapter, definePort, ports } from "@portico/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, startBody } from "../../harness/agent-app.ts";
import { type AgentCluster, type AgentProcess, clusterServers, createAgentCluster } from "../../harness/agent-cluster.ts";
import { createGate } from "../../harness/gate.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../../harness/redis.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

const servers = await clusterServers();
afterAll(() => servers?.database.drop());

const stopped = (reason: string) => ({ terminal: { status: "interrupted", reason } });

const agents = new Map([
  ["helper", { name: "Helper", engine: "scripted", tools: ["DelegateToAgent"] }],
  ["second", { name: "Second", engine: "scripted" }],
]);

/** Turns with this prompt say a word and wait until they are stopped. */
function waits(service: AgentService, prompt: string): void {
  service.engine.on(prompt, async (_turn, context) => {
    await context.say({ type: "text", delta: "word" });
    await untilStopped(context);
  });
}

/** Begins a turn, and waits until its client hears it. */
async function begun(client: AgentClient, prompt: string, more: Record<string, unknown> = {}) {
  const { clientRequestId } = await client.start(prompt, more);
  await client.event("query:message", clientRequestId);
  return (await client.event("query:started", clientRequestId)) as Record<string, string>;
}

const statusOf = async (service: AgentService, agentId: string) =>
  (await service.call("owner", "GET", "/api/agents")).body.agents.find(({ id }: { id: string }) => id === agentId).status;

/** Fills a port of the app with what a test reaches through it. */
const backgroundTurnsPort = definePort<ports.BackgroundTurns>("test/background-turns");
const reached = defineAdapter({
  name: "reached-background-turns",
  port: backgroundTurnsPort,
  needs: { turns: ports.backgroundTurns },
  open: ({ turns }) => turns,
});

describe.skipIf(!servers)("a process of an instance", () => {
  let cluster: AgentCluster;
  let [a, b, c]: AgentProcess[] = [];
  let client: AgentClient;
  beforeAll(async () => {
    cluster = createAgentCluster(servers!);
    const start = (executes: boolean) => cluster.start({ executes, adapters: [reached()], agents });
    [a, b, c] = [await start(false), await start(true), await start(false)];
    waits(b!, "wait");
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  beforeEach(async () => {
    client = await a!.connect();
  });

  it.each(["a turn", "all that executes in a session"])("aborts %s that executes elsewhere", async (which) => {
    const { sessionId, clientRequestId } = await begun(client, "wait");
    client.socket.emit("query:abort", { sessionId, ...(which === "a turn" && { clientRequestId }) });
    expect((await client.ended(clientRequestId!)).data).toMatchObject(stopped("user_stop"));
  });

  it("aborts no turn of another user", async () => {
    const { sessionId, clientRequestId } = await begun(client, "wait");
    const other = await c!.connect("member");
    other.socket.emit("query:abort", { sessionId, clientRequestId });
    other.socket.emit("query:abort", { sessionId });
    const own = await begun(other, "wait");
    other.socket.emit("query:abort", { sessionId: own["sessionId"] });
    await other.ended(own["clientRequestId"]!);
    expect(client.heard.map(({ event }) => event)).not.toContain("query:complete");
    client.socket.emit("query:abort", { sessionId });
    await client.ended(clientRequestId!);
  });

  it("aborts a turn that waits in line elsewhere: it never begins", async () => {
    const first = await begun(client, "wait");
    const waiting = await client.start("never", {}, { conversationId: first["conversationId"] });
    client.socket.emit("query:abort", { sessionId: first["sessionId"], clientRequestId: waiting.clientRequestId });
    client.socket.emit("query:abort", { sessionId: first["sessionId"], clientRequestId: first["clientRequestId"] });
    expect((await client.ended(waiting.clientRequestId)).data).toMatchObject(stopped("user_stop"));
    expect(b!.engine.played).not.toContain("never");
  });

  it("clears a conversation whose turn executes elsewhere, and waits for it", async () => {
    const { conversationId, clientRequestId } = await begun(client, "wait");
    const answer = await c!.call("owner", "POST", `/api/conversations/${conversationId}/clear`);
    expect(answer).toMatchObject({ status: 200, body: { conversationId, cleared: true } });
    expect((await client.ended(clientRequestId!)).data).toMatchObject(stopped("conversation_cleared"));
    expect((await a!.call("owner", "GET", `/api/conversations/${conversationId}/messages`)).body.messages).toEqual([]);
  });

  it("stops a background turn that executes elsewhere", async () => {
    const begins = createGate();
    b!.engine.on("in the background", async (_turn, context) => {
      begins.open();
      await untilStopped(context);
    });
    const turns = c!.app.port(backgroundTurnsPort);
    const origin = { origin: "test", displayName: "Test" } as const;
    const { runId } = await turns.start({ agentId: "helper", userId: "owner", prompt: "in the background", maxTurns: 2, origin });
    await begins.opened;
    expect(await turns.stop(runId, "not_needed")).toBe(true);
    const run = async () => (await a!.call("owner", "GET", `/api/runs/${runId}`)).body;
    await expect.poll(run).toMatchObject({ status: "idle", interruption_reason: "not_needed" });
    expect(await turns.stop(runId, "again")).toBe(false);
  });

  it("shows that an agent is busy elsewhere", async () => {
    await expect.poll(() => statusOf(a!, "helper")).toBe("idle");
    const { sessionId, clientRequestId } = await begun(client, "wait");
    for (const service of [a!, b!, c!]) await expect.poll(() => statusOf(service, "helper")).toBe("busy");
    const late = await cluster.start({ executes: false, agents });
    await expect.poll(() => statusOf(late, "helper")).toBe("busy");
    expect(await statusOf(a!, "second")).toBe("idle");
    client.socket.emit("query:abort", { sessionId });
    await client.ended(clientRequestId!);
    for (const service of [a!, b!, c!, late]) await expect.poll(() => statusOf(service, "helper")).toBe("idle");
  });

  it("has a turn wait for the answer of a turn that it delegated and that executes elsewhere", async () => {
    const results: unknown[] = [];
    const leaving = createGate();
    b!.engine.on("delegate", async (_turn, { callTool, signal }) => {
      await leaving.opened;
      const call = { callId: "1", toolId: "DelegateToAgent", arguments: { agentId: "second", prompt: "do it" } };
      results.push(await callTool(call as never, signal));
    });
    const { clientRequestId } = await client.start("delegate");
    await client.event("query:started", clientRequestId);
    // From now on, nothing begins in the process of the delegating turn.
    const drained = b!.app.port(ports.engine).drain(60_000);
    const next = await cluster.start({ agents });
    leaving.open();
    await client.ended(clientRequestId);
    await drained;
    expect(results).toEqual([{ content: [{ type: "text", text: "You said: do it" }], isError: false }]);
    expect(next.engine.played).toEqual(["do it"]);
  });
});

describe.skipIf(!servers || !hasRedisServer())("a process of an instance whose Redis is away", () => {
  let cluster: AgentCluster;
  let redis: OwnRedis;
  let [a, b]: AgentProcess[] = [];
  let client: AgentClient;
  beforeEach(async () => {
    redis = await ownRedis();
    cluster = createAgentCluster(servers!, { url: redis.url });
    [a, b] = [await cluster.start({ executes: false }), await cluster.start()];
    waits(b!, "wait");
    client = await a!.connect();
  });
  afterEach(async () => {
    await cluster[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  });

  it("aborts a turn elsewhere, and clears a conversation, when Redis is back", async () => {
    const [stop, clear] = [await begun(client, "wait"), await begun(client, "wait")];
    await redis.kill();
    client.socket.emit("query:abort", { sessionId: stop["sessionId"], clientRequestId: stop["clientRequestId"] });
    const cleared = a!.call("owner", "POST", `/api/conversations/${clear["conversationId"]}/clear`);
    const { body } = await a!.call("owner", "POST", "/api/query/start", startBody({ id: "elsewhere" }, "x"));
    expect(body.code).toBe("realtime_unavailable");
    await redis.start();
    expect((await client.ended(stop["clientRequestId"]!)).data).toMatchObject(stopped("user_stop"));
    expect((await cleared).status).toBe(200);
    expect((await client.ended(clear["clientRequestId"]!)).data).toMatchObject(stopped("conversation_cleared"));
  });
});
