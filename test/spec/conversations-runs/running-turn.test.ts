import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectAgent } from "@portico/client";
import {
  type AgentClient,
  type AgentService,
  type Heard,
  type Holder,
  startAgentService,
  TOKENS,
} from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
let member: AgentClient;
const running = (id: string, holder: Holder = "member") =>
  service.call(holder, "GET", `/api/conversations/${encodeURIComponent(id)}/running-turn`);
/** What a client heard of a turn: `started`, each message's number, and the end. */
const shortly = (heard: readonly Heard[], clientRequestId: string): readonly string[] =>
  heard
    .filter(({ event, data }) => event.startsWith("query:") && data.clientRequestId === clientRequestId)
    .map(({ event, data }) => (event === "query:message" ? `${data.message.seq}` : event.replace("query:", "")));

/** A turn that says a word at once, and another one when the gate opens. */
async function held(prompt: string, client = member) {
  const gate = createGate();
  service.engine.on(prompt, async (_turn, { say }) => {
    await say({ type: "text", delta: "first " });
    await gate.opened;
    await say({ type: "text", delta: "second" });
  });
  const { clientRequestId } = await client.start(prompt);
  const { conversationId, sessionId, runId } = await client.event("query:started", clientRequestId);
  return { gate, clientRequestId, conversationId, sessionId, runId };
}

beforeAll(async () => {
  service = await startAgentService();
  member = await service.connect("member");
});
afterAll(() => service.close());

describe("GET /api/conversations/:id/running-turn", () => {
  it("shows the turn that runs with its message, and nothing when it has ended", async () => {
    const { gate, clientRequestId, conversationId, sessionId, runId } = await held("a turn to see");
    const { status, body } = await running(conversationId);
    expect(status).toBe(200);
    const { messages } = (await service.call("member", "GET", `/api/conversations/${conversationId}/messages`)).body;
    expect(body.turn).toEqual({
      ...{ runId, sessionId, agentId: "helper", userId: "member", clientRequestId, userMessageId: expect.any(String) },
      startedAt: messages[0].at,
      isWaiting: false,
      begunBy: { kind: "client" },
      message: messages[0],
    });
    expect(body.turn.message.parts).toEqual([{ type: "text", text: "a turn to see" }]);
    gate.open();
    await member.ended(clientRequestId);
    await expect.poll(async () => (await running(conversationId)).body).toEqual({ turn: null });
  });

  it("is the owner's and its user's: 404 for others, as for conversations that do not exist", async () => {
    const { gate, clientRequestId, conversationId } = await held("mine");
    expect((await running(conversationId, "owner")).body.turn.clientRequestId).toBe(clientRequestId);
    const missing = await running("conv_none");
    expect([missing.status, missing.body.code]).toEqual([404, "conversation_not_found"]);
    for (const holder of ["other", "service"] as const)
      expect(await running(conversationId, holder)).toMatchObject({ status: 404, body: missing.body });
    expect((await running("x".repeat(10_000))).status).toBe(404);
    gate.open();
    await member.ended(clientRequestId);
  });
});

describe("query:watch", () => {
  it("sends another client program the events of the turn, from the first to the end, once", async () => {
    const { gate, clientRequestId, conversationId } = await held("to be watched");
    const beside = await service.connect("member");
    beside.socket.emit("query:watch", { conversationId, clientRequestId });
    await expect.poll(() => shortly(beside.heard, clientRequestId)).toEqual(["started", "1"]);
    gate.open();
    await beside.ended(clientRequestId);
    expect(shortly(beside.heard, clientRequestId)).toEqual(["started", "1", "2", "complete"]);
    expect(shortly(member.heard, clientRequestId)).toEqual(["started", "1", "2", "complete"]);
  });

  it("continues after the message that the client has, and stops with query:unwatch", async () => {
    const { gate, clientRequestId, conversationId } = await held("to be continued");
    const [late, gone] = [await service.connect("owner"), await service.connect("member")];
    gone.socket.emit("query:watch", { conversationId, clientRequestId });
    await expect.poll(() => shortly(gone.heard, clientRequestId)).toEqual(["started", "1"]);
    gone.socket.emit("query:unwatch", { clientRequestId });
    late.socket.emit("query:watch", { conversationId, clientRequestId, seq: 1 });
    gate.open();
    await late.ended(clientRequestId);
    expect(shortly(late.heard, clientRequestId)).toEqual(["2", "complete"]);
    expect(shortly(gone.heard, clientRequestId)).toEqual(["started", "1"]);
  });

  it("sends nothing of turns of others, of other conversations, and for values that are not allowed", async () => {
    const { gate, clientRequestId, conversationId } = await held("not for everybody");
    const own = await held("of another conversation");
    const [other, same] = [await service.connect("other"), await service.connect("member")];
    other.socket.emit("query:watch", { conversationId, clientRequestId });
    same.socket.emit("query:watch", { conversationId: own.conversationId, clientRequestId });
    same.socket.emit("query:watch", { conversationId, clientRequestId, seq: -1 });
    same.socket.emit("query:watch", { conversationId, clientRequestId: "unknown" });
    gate.open();
    await member.ended(clientRequestId);
    // What would be sent comes before the events of a turn that is watched after it.
    same.socket.emit("query:watch", { conversationId: own.conversationId, clientRequestId: own.clientRequestId });
    own.gate.open();
    await same.ended(own.clientRequestId);
    expect([other, same].flatMap(({ heard }) => shortly(heard, clientRequestId))).toEqual([]);
  });
});

describe("the client's watch", () => {
  it("shows the messages and the end of a turn of another program", async () => {
    const { gate, clientRequestId, conversationId } = await held("for the client");
    await using client = connectAgent({ baseURL: service.url, token: TOKENS.member });
    await client.connected();
    const { turn } = await client.calls.runningTurn({ params: { id: conversationId } });
    const watched = client.watch({ conversationId, ...turn! });
    expect(() => client.watch({ conversationId, ...turn! })).toThrow(TypeError);
    const messages = watched[Symbol.asyncIterator]();
    expect((await messages.next()).value).toMatchObject({ delta: "first ", seq: 1 });
    gate.open();
    expect((await messages.next()).value).toMatchObject({ delta: "second", seq: 2 });
    expect(await messages.next()).toEqual({ done: true, value: undefined });
    expect(await watched.ended).toMatchObject({ status: "completed" });
    expect(clientRequestId).toBe(watched.clientRequestId);
  });

  it("ends as unknown when it is aborted, and the turn goes on; abort of the query stops the turn", async () => {
    service.engine.on("to be stopped", (_turn, context) => untilStopped(context));
    const { clientRequestId } = await member.start("to be stopped");
    const { conversationId } = await member.event("query:started", clientRequestId);
    await using client = connectAgent({ baseURL: service.url, token: TOKENS.member });
    const { turn } = await client.calls.runningTurn({ params: { id: conversationId } });
    const leaving = new AbortController();
    const left = client.watch({ conversationId, ...turn! }, { signal: leaving.signal });
    leaving.abort();
    expect(await left.ended).toMatchObject({ status: "unknown" });
    expect((await running(conversationId)).body.turn.clientRequestId).toBe(clientRequestId);
    const watched = client.watch({ conversationId, ...turn! });
    watched.abort();
    expect(await watched.ended).toMatchObject({ status: "interrupted" });
    expect((await member.ended(clientRequestId)).event).toBe("query:complete");
  });
});
