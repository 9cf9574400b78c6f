import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { connectAgent } from "@portico/client";
import { ports } from "@portico/core";
import {
  clientRequests,
  requestKey,
  type ClientRequest,
} from "../../../plugins/src/conversations-runs/requests/client-requests.ts";
import { transcriptStream } from "../../../plugins/src/conversations-runs/turns/turn.ts";
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
async function held(prompt: string, client = member, more: Record<string, unknown> = {}) {
  const gate = createGate();
  service.engine.on(prompt, async (_turn, { say }) => {
    await say({ type: "text", delta: "first " });
    await gate.opened;
    await say({ type: "text", delta: "second" });
  });
  const { clientRequestId } = await client.start(prompt, more);
  const { conversationId, sessionId, runId } = await client.event("query:started", clientRequestId);
  return { gate, clientRequestId, conversationId, sessionId, runId };
}

const watchEnds = (heard: readonly Heard[]) => heard.filter(({ event }) => event === "query:watch-ended").map(({ data }) => data);

async function turnIdOf(clientRequestId: string): Promise<string> {
  const stored = await service.app
    .port(ports.records)
    .collection<ClientRequest>(clientRequests)
    .get(requestKey("member", clientRequestId));
  return stored!.value.turnId;
}

/** Watches a turn that does not exist. What the client heard when it resolves was sent before. */
async function endsAWatch({ socket, heard }: AgentClient): Promise<void> {
  socket.emit("query:watch", { conversationId: "conv_none", clientRequestId: "an-unknown-request" });
  await expect.poll(() => watchEnds(heard).length).toBe(1);
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
      steering: [],
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

  it("sends nothing of a turn that was unwatched at once", async () => {
    const { gate, clientRequestId, conversationId } = await held("not any more");
    const beside = await service.connect("member");
    beside.socket.emit("query:watch", { conversationId, clientRequestId });
    beside.socket.emit("query:unwatch", { clientRequestId });
    gate.open();
    await member.ended(clientRequestId);
    await endsAWatch(beside);
    expect(shortly(beside.heard, clientRequestId)).toEqual([]);
  });

  it("sends nothing of turns of others, of other conversations, and for values that are not allowed, and says not_found", async () => {
    const { gate, clientRequestId, conversationId } = await held("not for everybody");
    const own = await held("of another conversation");
    const [other, same] = [await service.connect("other"), await service.connect("member")];
    other.socket.emit("query:watch", { conversationId, clientRequestId });
    same.socket.emit("query:watch", { conversationId: own.conversationId, clientRequestId });
    same.socket.emit("query:watch", { conversationId, clientRequestId, seq: -1 });
    same.socket.emit("query:watch", { conversationId, clientRequestId: "an-unknown-request" });
    gate.open();
    await member.ended(clientRequestId);
    // What would be sent comes before the events of a turn that is watched after it.
    same.socket.emit("query:watch", { conversationId: own.conversationId, clientRequestId: own.clientRequestId });
    own.gate.open();
    await same.ended(own.clientRequestId);
    await expect
      .poll(() => [other, same].map(({ heard }) => watchEnds(heard)))
      .toEqual([
        [{ conversationId, clientRequestId, reason: "not_found" }],
        [
          { conversationId: own.conversationId, clientRequestId, reason: "not_found" },
          { conversationId, clientRequestId: "an-unknown-request", reason: "not_found" },
        ],
      ]);
    expect([other, same].flatMap(({ heard }) => shortly(heard, clientRequestId))).toEqual(["watch-ended", "watch-ended"]);
  });

  it("says too_many of the oldest of nine turns, and the other eight go on", async () => {
    const beside = await service.connect("member");
    const turns = [];
    for (let n = 0; n < 9; n++) turns.push(await held(`one of nine: ${n}`));
    for (const { conversationId, clientRequestId } of turns)
      beside.socket.emit("query:watch", { conversationId, clientRequestId });
    const [{ conversationId, clientRequestId } = turns[1]!, ...others] = turns;
    await expect.poll(() => watchEnds(beside.heard)).toEqual([{ conversationId, clientRequestId, reason: "too_many" }]);
    for (const { gate } of turns) gate.open();
    for (const each of others) await beside.ended(each.clientRequestId);
    expect(watchEnds(beside.heard)).toHaveLength(1);
  });

  it("shows turns of two users with the same clientRequestId side by side", async () => {
    const clientRequestId = "the-same-request-of-two";
    const one = await held("of one user", member, { clientRequestId });
    const two = await held("of another user", await service.connect("other"), { clientRequestId });
    const owner = await service.connect("owner");
    for (const { conversationId } of [one, two]) owner.socket.emit("query:watch", { conversationId, clientRequestId });
    const ends = () =>
      owner.heard.filter(({ event }) => event === "query:complete").map(({ data }) => data.conversationId as string);
    one.gate.open();
    two.gate.open();
    await expect.poll(ends).toHaveLength(2);
    expect(new Set(ends())).toEqual(new Set([one.conversationId, two.conversationId]));
  });

  it("says output_removed of a turn whose output is no longer kept", async () => {
    const { gate, clientRequestId, conversationId } = await held("soon forgotten");
    gate.open();
    await member.ended(clientRequestId);
    await expect.poll(async () => (await running(conversationId)).body).toEqual({ turn: null });
    await service.app.port(ports.log).remove(transcriptStream(await turnIdOf(clientRequestId)));
    const beside = await service.connect("member");
    beside.socket.emit("query:watch", { conversationId, clientRequestId });
    await expect.poll(() => watchEnds(beside.heard)).toEqual([{ conversationId, clientRequestId, reason: "output_removed" }]);
  });

  it("says failed of turns whose output cannot be read, and they take no place of others", async () => {
    const { gate, clientRequestId, conversationId } = await held("unreadable");
    const readable = await held("readable");
    const stream = transcriptStream(await turnIdOf(clientRequestId));
    const spies = service.apps.map((app) => {
      const log = app.port(ports.log);
      const read = log.read.bind(log);
      return vi.spyOn(log, "read").mockImplementation((name, ...more) => {
        if (name === stream) throw new Error("unreadable");
        return read(name, ...more);
      });
    });
    const beside = await service.connect("member");
    beside.socket.emit("query:watch", { conversationId: readable.conversationId, clientRequestId: readable.clientRequestId });
    for (let n = 1; n <= 8; n++) {
      beside.socket.emit("query:watch", { conversationId, clientRequestId });
      await expect
        .poll(() => watchEnds(beside.heard).map(({ reason }) => reason))
        .toEqual(Array.from({ length: n }, () => "failed"));
    }
    for (const spy of spies) spy.mockRestore();
    for (const each of [gate, readable.gate]) each.open();
    await beside.ended(readable.clientRequestId);
  });
});

describe("the client's watch", () => {
  it("ends as unknown if the service ends it", async () => {
    await using client = connectAgent({ baseURL: service.url, token: TOKENS.member });
    await client.connected();
    const ids = { clientRequestId: "an-unknown-request", userMessageId: "an-unknown-message" };
    const watched = client.watch({ conversationId: "conv_none", ...ids });
    expect(await watched.ended).toEqual({ status: "unknown", reason: expect.stringMatching(/no such turn/) });
  });

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
