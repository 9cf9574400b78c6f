import { randomUUID } from "node:crypto";
import { recordUsage } from "@portico/adapters/usage/records";
import { memoryUserFiles } from "@portico/adapters/user-files/memory";
import { ports } from "@portico/core";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type AgentClient,
  type AgentService,
  type Answer,
  startAgentService,
  startBody,
  withDigest,
} from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
let client: AgentClient;
beforeAll(async () => {
  service = await startAgentService();
  client = await service.connect("owner");
});
afterAll(() => service.close());

const start = "/api/query/start";
const followUp = "/api/query/follow-up";
const lookup = "/api/query/client-requests/lookup";
const look = async (...clientRequestIds: string[]) =>
  (
    await service.call("owner", "POST", lookup, {
      agentId: "helper",
      requests: clientRequestIds.map((clientRequestId) => ({ clientRequestId })),
    })
  ).body.results;

describe("POST /api/query/start (4.6)", () => {
  it("202 { ok: true, clientRequestId }", async () => {
    const { status, body, clientRequestId } = await client.start("Hello");
    expect([status, body]).toEqual([202, { ok: true, clientRequestId }]);
    await client.ended(clientRequestId);
  });

  it("the turn is told: query:started, query:message with seq from 1, query:complete with a structured terminal (6.2)", async () => {
    service.engine.on("three words", async (_turn, { say }) => {
      for (const delta of ["one ", "two ", "three"]) await say({ type: "text", delta });
    });
    const { clientRequestId } = await client.start("three words");
    await client.ended(clientRequestId);
    const heard = client.of(clientRequestId);
    expect(heard.map(({ event }) => event)).toEqual([
      "query:started",
      "query:message",
      "query:message",
      "query:message",
      "query:complete",
    ]);
    expect(heard[0]!.data).toMatchObject({
      sessionId: expect.stringMatching(/^ses_/),
      runId: expect.stringMatching(/^run_/),
      agentId: "helper",
      conversationId: expect.any(String),
      clientRequestId,
    });
    expect(heard.slice(1, 4).map(({ data }) => [data.message.type, data.message.delta, data.message.seq])).toEqual([
      ["text", "one ", 1],
      ["text", "two ", 2],
      ["text", "three", 3],
    ]);
    expect(new Set(heard.slice(1, 4).map(({ data }) => data.message.id)).size).toBe(1);
    expect(heard.at(-1)!.data).toMatchObject({
      terminal: { status: "completed", runId: heard[0]!.data.runId },
      result: { output: "one two three" },
    });
  });

  it("activity:run_status reports when the run executes, and when it no longer does", async () => {
    const { clientRequestId } = await client.start("status");
    const { runId } = await client.event("query:started", clientRequestId);
    await client.ended(clientRequestId);
    await expect
      .poll(() =>
        client.heard
          .filter(({ event, data }) => event === "activity:run_status" && data.runId === runId)
          .map(({ data }) => data.status),
      )
      .toEqual(["running", "idle"]);
  });

  it("thinking, tool calls and results are messages of their own types", async () => {
    service.engine.on("all types", async (_turn, { say }) => {
      await say({ type: "thinking", delta: "hm" });
      await say({ type: "text", delta: "a" });
      await say({ type: "tool_call", callId: "c1", toolId: "t", name: "t", arguments: { x: 1 } });
      const result = { content: [{ type: "text" as const, text: "done" }], isError: false };
      await say({ type: "tool_result", callId: "c1", toolId: "t", result });
      await say({ type: "text", delta: "b" });
    });
    const { clientRequestId } = await client.start("all types");
    await client.ended(clientRequestId);
    const messages = client.of(clientRequestId).flatMap(({ data }) => data.message ?? []);
    expect(messages.map(({ type, role, seq }) => [type, role, seq])).toEqual([
      ["thinking", "assistant", 1],
      ["text", "assistant", 2],
      ["tool_call", "assistant", 3],
      ["tool_result", "tool", 4],
      ["text", "assistant", 5],
    ]);
    expect(messages[2].content).toEqual({ callId: "c1", toolId: "t", name: "t", arguments: { x: 1 } });
    expect(new Set(messages.map(({ id }) => id)).size).toBe(5);
  });

  it("top level and options reject undeclared fields", async () => {
    const body = startBody(client, "x");
    const top = await service.call("owner", "POST", start, { ...body, more: 1 });
    const options = await service.call("owner", "POST", start, { ...body, options: { ...body.options, more: 1 } });
    expect([top.status, options.status]).toEqual([400, 400]);
    expect(await look(body.clientRequestId)).toMatchObject([{ status: "absent" }]);
  });

  it.each([
    ["a prompt that is no text", { prompt: 1 }],
    ["no prompt and no media", { prompt: "" }],
    ["no prompt at all", { prompt: undefined }],
    ["no clientRequestId", { clientRequestId: undefined }],
    ["an empty clientRequestId", { clientRequestId: "" }],
    ["a clientRequestId of 257 characters", { clientRequestId: "x".repeat(257) }],
    ["a clientRequestId with U+0000", { clientRequestId: "a\0b" }],
    ["no userMessageId", { userMessageId: undefined }],
    ["a requestDigest of another kind", { requestDigest: "sha256:00" }],
    ["no requestDigest", { requestDigest: undefined }],
    ["no originSocketId", { originSocketId: undefined }],
    ["no options", { options: undefined }],
    ["no agentId", { options: {} }],
    ["maxTurns 0", { options: { agentId: "helper", maxTurns: 0 } }],
    ["maxTurns 101", { options: { agentId: "helper", maxTurns: 101 } }],
    ["metadata that is a list", { options: { agentId: "helper", metadata: ["a"] } }],
    ["metadata that is an empty list", { options: { agentId: "helper", metadata: [] } }],
    ["metadata with a name that objects inherit", { options: { agentId: "helper", metadata: { constructor: "a" } } }],
    ["metadata that is no object of strings", { options: { agentId: "helper", metadata: { a: 1 } } }],
    ["half a surrogate pair", { prompt: "\ud800" }],
    ["an agent that is not there", { options: { agentId: "nobody" } }],
    ["an agent with a path in its id", { options: { agentId: "../helper" } }],
    ["media where the instance takes none", { mediaRefs: [{ mediaId: "x" }] }],
    ["file references where the instance takes none", { options: { agentId: "helper", fileReferences: ["x"] } }],
  ])("400 for a bad shape: %s", async (_what, change) => {
    const { status, body } = await service.call("owner", "POST", start, { ...startBody(client, "x"), ...change });
    expect([status, typeof body.error]).toEqual([400, "string"]);
  });

  it("400 for invalid JSON, 413 for too large bodies, 415 for another media type; later queries work", async () => {
    const json = await service.call("owner", "POST", start, "{");
    const large = await service.call("owner", "POST", start, startBody(client, "x".repeat(5 * 1024 * 1024)));
    const type = await service.call("owner", "POST", start, "{}", { "content-type": "text/plain" });
    expect([json.status, large.status, type.status]).toEqual([400, 413, 415]);
    const after = await client.start("still there");
    expect(after.status).toBe(202);
    await client.ended(after.clientRequestId);
  });

  it("the start body must not be used as a follow-up body", async () => {
    const { status } = await service.call("owner", "POST", followUp, startBody(client, "x"));
    expect(status).toBe(400);
  });

  it("without options.conversationId a new conversation is made; with one the query continues its session", async () => {
    const first = await client.start("first");
    const { conversationId, sessionId, runId } = await client.event("query:started", first.clientRequestId);
    await client.ended(first.clientRequestId);
    const second = await client.start("second", {}, { conversationId });
    expect(await client.event("query:started", second.clientRequestId)).toMatchObject({ conversationId, sessionId, runId });
    await client.ended(second.clientRequestId);
    const third = await client.start("third");
    expect((await client.event("query:started", third.clientRequestId)).conversationId).not.toBe(conversationId);
    await client.ended(third.clientRequestId);
  });

  it("a conversation that is another user's, or not there, is 404 in the same words; one of another agent is 400", async () => {
    const { clientRequestId } = await client.start("mine");
    const { conversationId } = await client.event("query:started", clientRequestId);
    await client.ended(clientRequestId);
    const stranger = await service.connect("member");
    const foreign = await stranger.start("x", {}, { conversationId });
    const missing = await stranger.start("x", {}, { conversationId: "conv_none" });
    const agent = await client.start("x", {}, { conversationId, agentId: "second" });
    expect([foreign.status, missing.status, agent.status]).toEqual([404, 404, 400]);
    expect(foreign.body).toEqual(missing.body);
  });

  it("earlier turns are the history of the next", async () => {
    const histories: unknown[] = [];
    service.engine.on("second turn", async (turn) => void histories.push(turn.history));
    const first = await client.start("first turn");
    const { conversationId } = await client.event("query:started", first.clientRequestId);
    await client.ended(first.clientRequestId);
    const second = await client.start("second turn", {}, { conversationId });
    await client.ended(second.clientRequestId);
    expect(histories).toEqual([
      [
        { role: "user", parts: [{ type: "text", text: "first turn" }] },
        { role: "assistant", parts: [{ type: "text", text: "You said: first turn" }] },
      ],
    ]);
  });

  it("model and maxTurns reach the agent's engine; a model that no provider serves is query:error", async () => {
    const turns: unknown[] = [];
    service.engine.on("options", async ({ model, maxTurns }) => void turns.push({ model, maxTurns }));
    const good = await client.start("options", {}, { model: "demo", maxTurns: 3, metadata: { from: "test" } });
    await client.ended(good.clientRequestId);
    const bad = await client.start("options", {}, { model: "unheard-of" });
    expect(await client.ended(bad.clientRequestId)).toMatchObject({ event: "query:error", data: { code: "model_unavailable" } });
    expect(turns).toEqual([{ model: "demo", maxTurns: 3 }]);
  });
});

describe("admission is exact (open points 7)", () => {
  it("the same clientRequestId with the same content is 202 again, with duplicate: true, and nothing runs twice", async () => {
    const { sent, clientRequestId } = await client.start("only once");
    await client.ended(clientRequestId);
    const again = await service.call("owner", "POST", start, sent);
    expect([again.status, again.body]).toEqual([202, { ok: true, clientRequestId, duplicate: true }]);
    expect(service.engine.played.filter((prompt) => prompt === "only once")).toHaveLength(1);
  });

  it("two identical starts at once: one runs, both get 202", async () => {
    const body = startBody(client, "at once");
    const answers = await Promise.all(Array.from({ length: 8 }, () => service.call("owner", "POST", start, body)));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(202));
    expect(answers.filter(({ body: { duplicate } }) => duplicate)).toHaveLength(7);
    await client.ended(body.clientRequestId);
    expect(service.engine.played.filter((prompt) => prompt === "at once")).toHaveLength(1);
  });

  it("a different originSocketId is not different content: a client that reconnected gets a replay", async () => {
    const { sent } = await client.start("replayed");
    const back = await service.connect("owner", { clientInstanceId: client.clientInstanceId });
    const again = await service.call("owner", "POST", start, { ...sent, originSocketId: back.id });
    expect(again).toMatchObject({ status: 202, body: { duplicate: true } });
    back.leave();
    await client.ended(sent.clientRequestId);
  });

  it.each([
    ["another digest", (body: any) => ({ ...body, requestDigest: "qrd1:00" })],
    ["the same digest and another prompt", (body: any) => ({ ...body, prompt: "changed" })],
    [
      "another prompt with its own digest",
      ({ requestDigest: _digest, ...body }: any) => withDigest({ ...body, prompt: "changed" }),
    ],
  ])("the same clientRequestId with %s is 409 CLIENT_REQUEST_BODY_MISMATCH with retryable false", async (_what, change) => {
    const { sent, clientRequestId } = await client.start("original");
    const other = await service.call("owner", "POST", start, change(sent));
    expect(other).toMatchObject({ status: 409, body: { error: "CLIENT_REQUEST_BODY_MISMATCH", retryable: false } });
    await client.ended(clientRequestId);
  });

  it("one user's clientRequestId is nothing of another's", async () => {
    const { clientRequestId, sent } = await client.start("mine alone");
    const stranger = await service.connect("member");
    const theirs = await service.call("member", "POST", start, { ...sent, originSocketId: stranger.id });
    expect(theirs.body).toEqual({ ok: true, clientRequestId });
    await Promise.all([client.ended(clientRequestId), stranger.ended(clientRequestId)]);
  });

  it("turns of one session run one after another in the order of their admission; different sessions side by side", async () => {
    const [gate, order] = [createGate(), [] as string[]];
    service.engine.on("slow", async () => {
      order.push("slow began");
      await gate.opened;
      order.push("slow ended");
    });
    for (const prompt of ["next", "last"]) service.engine.on(prompt, async () => void order.push(prompt));
    const slow = await client.start("slow");
    const { conversationId } = await client.event("query:started", slow.clientRequestId);
    const next = await client.start("next", {}, { conversationId });
    const last = await client.start("last", {}, { conversationId });
    const elsewhere = await client.start("elsewhere");
    await client.ended(elsewhere.clientRequestId);
    expect(await look(next.clientRequestId)).toMatchObject([{ status: "reserved" }]);
    gate.open();
    await client.ended(last.clientRequestId);
    expect(order).toEqual(["slow began", "slow ended", "next", "last"]);
  });
});

describe("POST /api/query/follow-up (4.6)", () => {
  it("202 { ok: true, sessionId, clientRequestId }, query:followUpAccepted, and the turn; a duplicate admission adds duplicate", async () => {
    const first = await client.start("begin");
    const { sessionId } = await client.event("query:started", first.clientRequestId);
    await client.ended(first.clientRequestId);
    const { status, body, clientRequestId, sent } = await client.followUp(sessionId, "go on");
    expect([status, body]).toEqual([202, { ok: true, sessionId, clientRequestId }]);
    expect(await client.event("query:followUpAccepted", clientRequestId)).toEqual({ sessionId, clientRequestId });
    expect((await client.ended(clientRequestId)).data).toMatchObject({ sessionId, terminal: { status: "completed" } });
    const again = await service.call("owner", "POST", followUp, sent);
    expect(again.body).toEqual({ ok: true, sessionId, clientRequestId, duplicate: true });
  });

  it.each([
    ["an undeclared field", { more: 1 }],
    ["an undeclared field of the message", { message: { id: "m", role: "user", content: "x", timestamp: 1, more: 1 } }],
    ["a role that is not user", { message: { id: "m", role: "assistant", content: "x", timestamp: 1 } }],
    ["a timestamp that is a text", { message: { id: "m", role: "user", content: "x", timestamp: "1" } }],
    ["no content", { message: { id: "m", role: "user", content: "", timestamp: 1 } }],
    ["no digest", { requestDigest: undefined }],
  ])("400 for %s", async (_what, change) => {
    const body = withDigest({
      sessionId: "ses_x",
      originSocketId: client.id,
      message: { id: "m", role: "user", content: "x", timestamp: 1 },
      clientRequestId: randomUUID(),
    });
    expect((await service.call("owner", "POST", followUp, { ...body, ...change })).status).toBe(400);
  });

  it("a session that is another user's, or not there, is 404 in the same words", async () => {
    const first = await client.start("private");
    const { sessionId } = await client.event("query:started", first.clientRequestId);
    await client.ended(first.clientRequestId);
    const stranger = await service.connect("member");
    const [foreign, missing, odd] = [
      await stranger.followUp(sessionId, "x"),
      await stranger.followUp("ses_none", "x"),
      await stranger.followUp("../records", "x"),
    ];
    expect([foreign.status, missing.status, odd.status]).toEqual([404, 404, 404]);
    expect(foreign.body).toEqual(missing.body);
  });
});

describe("the realtime connection of a query (7.6)", () => {
  it("an unknown or closed originSocketId is 503, and nothing was admitted", async () => {
    const gone = await service.connect("owner");
    const { id } = gone;
    gone.leave();
    const submit = async (body: object) => (await service.call("owner", "POST", start, body)).status;
    // Processes of a cluster hear of it one after another.
    const statuses = () => Promise.all([1, 2, 3].map(() => submit(startBody({ id }, "x"))));
    await expect.poll(statuses).toEqual([503, 503, 503]);
    const body = startBody({ id }, "x");
    expect(await submit(body)).toBe(503);
    const unknown = await service.call("owner", "POST", start, startBody({ id: "forged" }, "x"));
    expect(unknown.status).toBe(503);
    expect(await look(body.clientRequestId)).toMatchObject([{ status: "absent" }]);
  });

  it("one that belongs to another identity is 403", async () => {
    const stranger = await service.connect("member");
    const { status } = await service.call("owner", "POST", start, startBody(stranger, "x"));
    expect(status).toBe(403);
  });

  it("a token without a user cannot submit: 403", async () => {
    const program = await service.connect("service");
    expect((await program.start("x")).status).toBe(403);
    const found = await service.call("service", "POST", lookup, { agentId: "helper", requests: [{ clientRequestId: "x" }] });
    expect(found.status).toBe(403);
  });
});

describe("what a submission is refused with (7.6)", () => {
  it("is exactly what its route declares", async () => {
    await using own = await startAgentService();
    const [owner, stranger, program] = [await own.connect("owner"), await own.connect("member"), await own.connect("service")];
    const refused = { start: new Set<string>(), followUp: new Set<string>() };
    const note = (route: keyof typeof refused, { status, body }: Answer) => {
      expect(status).toBeGreaterThanOrEqual(400);
      refused[route].add(body.code);
    };
    const gate = createGate();
    own.engine.on("in the way", async (_turn, context) => {
      await untilStopped(context).catch(async (error: unknown) => {
        await gate.opened;
        throw error;
      });
    });
    const first = await owner.start("first");
    const { conversationId, sessionId } = await owner.event("query:started", first.clientRequestId);
    await owner.ended(first.clientRequestId);
    const next = await owner.followUp(sessionId, "next");
    await owner.ended(next.clientRequestId);

    note("start", await own.call(undefined, "POST", start, first.sent));
    note("start", await program.start("x"));
    note("start", await own.call("owner", "POST", start, startBody({ id: "forged" }, "x")));
    note("start", await own.call("owner", "POST", start, startBody(stranger, "x")));
    note("start", await own.call("owner", "POST", start, { ...first.sent, prompt: "changed" }));
    note("start", await owner.start("x", { mediaRefs: [{ mediaId: "none" }] }));
    await using taking = await startAgentService({ adapters: [memoryUserFiles({})] });
    const uploader = await taking.connect("owner");
    await expect.poll(() => uploader.socket.connected).toBe(true);
    note("start", await uploader.start("x", { mediaRefs: [{ mediaId: "none" }] }));
    note("start", await uploader.start("x", {}, { fileReferences: ["none"] }));
    note("start", await owner.start("x", {}, { agentId: "nobody" }));
    note("start", await owner.start("x", {}, { agentId: "second", conversationId }));
    note("start", await owner.start("x", {}, { conversationId: "conv_none" }));
    const userMessageId = first.sent["userMessageId"] as string;
    note("start", await owner.start("x", {}, { conversationId, replaces: "none" }));
    note("start", await owner.start("", {}, { conversationId, regenerates: userMessageId }));

    note("followUp", await own.call(undefined, "POST", followUp, next.sent));
    note("followUp", await program.followUp(sessionId, "x"));
    note("followUp", await own.call("owner", "POST", followUp, { ...next.sent, originSocketId: "forged" }));
    note("followUp", await own.call("owner", "POST", followUp, { ...next.sent, originSocketId: stranger.id }));
    note("followUp", await own.call("owner", "POST", followUp, { ...next.sent, requestDigest: "qrd1:00" }));
    note("followUp", await owner.followUp("ses_none", "x"));

    const running = await owner.start("in the way", {}, { conversationId });
    await owner.event("query:started", running.clientRequestId);
    note("start", await owner.start("x", {}, { conversationId, replaces: userMessageId }));
    const clearing = own.call("owner", "POST", `/api/conversations/${conversationId}/clear`);
    await expect.poll(async () => (await owner.start("too early", {}, { conversationId })).status).toBe(409);
    note("start", await owner.start("x", {}, { conversationId }));
    note("followUp", await owner.followUp(sessionId, "x"));
    gate.open();
    await clearing;

    const second = await owner.start("second", {}, { conversationId });
    const session = (await owner.event("query:started", second.clientRequestId)).sessionId;
    await owner.ended(second.clientRequestId);
    const jumps = Array.from({ length: 256 }, (_, index) => ({ at: 2, after: 1, branch: index + 2 }));
    await own.app.port(ports.records).collection({ name: "conversation-branches" }).put(conversationId, { jumps });
    note("start", await owner.start("x", {}, { conversationId, replaces: second.sent["userMessageId"] }));
    // It owns the work from now on.
    await using later = await startAgentService({
      dataDir: own.dataDir,
      adapters: [recordUsage({})],
      runtime: { limits: { user: { tokensPerDay: 0 } } },
    });
    // In a cluster, one process of three has the connection, and gets further than to look for it.
    for (let process = 0; process < 3; process++) {
      note("start", await owner.start("x"));
      note("followUp", await owner.followUp(session, "x"));
    }

    const limited = await later.connect("owner");
    await expect.poll(() => limited.socket.connected).toBe(true);
    note("start", await limited.start("x"));
    note("followUp", await limited.followUp(session, "x"));

    for (const route of ["start", "followUp"] as const)
      expect([...refused[route]].sort()).toEqual(Object.keys(conversationsRunsContract[route].errors).sort());
  });
});

describe("query:abort (4.6, open points 7)", () => {
  it("stops the turn: it ends with query:complete, interrupted, with what was produced; the run is idle again and can go on", async () => {
    const stopped: unknown[] = [];
    service.engine.on("endless", async (_turn, context) => {
      await context.say({ type: "text", delta: "so far" });
      await untilStopped(context).catch((error: Error) => {
        stopped.push(error.name);
        throw error;
      });
    });
    const { clientRequestId } = await client.start("endless");
    const { sessionId, runId } = await client.event("query:started", clientRequestId);
    await client.event("query:message", clientRequestId);
    client.socket.emit("query:abort", { sessionId });
    expect((await client.ended(clientRequestId)).data).toMatchObject({
      terminal: { status: "interrupted", reason: "user_stop", partial: "so far", runId },
    });
    expect(stopped).toEqual(["TurnStopped"]);
    const { body: run } = await service.call("owner", "GET", `/api/runs/${runId}`);
    expect(run).toMatchObject({ status: "idle", interruption_reason: "user_stop", interrupted_at: expect.any(String) });
    const { body } = await service.call("owner", "GET", `/api/runs/${runId}/receipt`);
    expect(body.receipts).toMatchObject([
      { output: "so far", outcome: { status: "partial", auto_completed: false }, interruption_reason: "user_stop" },
    ]);
    const next = await client.followUp(sessionId, "go on");
    expect((await client.ended(next.clientRequestId)).data.terminal.status).toBe("completed");
    expect((await service.call("owner", "GET", `/api/runs/${runId}`)).body.interruption_reason).toBeUndefined();
  });

  it("stops a turn that waits: it never reaches its agent", async () => {
    const gate = createGate();
    service.engine.on("in front", () => gate.opened);
    const front = await client.start("in front");
    const { sessionId, conversationId } = await client.event("query:started", front.clientRequestId);
    const waiting = await client.start("never played", {}, { conversationId });
    client.socket.emit("query:abort", { sessionId, clientRequestId: waiting.clientRequestId });
    // One connection's events and the calls after their effect: the next abort is answered by an end.
    const other = await client.start("other");
    await client.ended(other.clientRequestId);
    gate.open();
    expect((await client.ended(waiting.clientRequestId)).data).toMatchObject({
      terminal: { status: "interrupted", reason: "user_stop", partial: "" },
    });
    expect(service.engine.played).not.toContain("never played");
    expect((await client.ended(front.clientRequestId)).data.terminal.status).toBe("completed");
  });

  it("with only a clientRequestId stops a turn that has not begun (open points 15)", async () => {
    const gate = createGate();
    service.engine.on("ahead of it", () => gate.opened);
    const front = await client.start("ahead of it");
    const { conversationId } = await client.event("query:started", front.clientRequestId);
    const waiting = await client.start("stopped by its request", {}, { conversationId });
    client.socket.emit("query:abort", { clientRequestId: waiting.clientRequestId });
    const other = await client.start("after the abort");
    await client.ended(other.clientRequestId);
    gate.open();
    expect((await client.ended(waiting.clientRequestId)).data).toMatchObject({
      terminal: { status: "interrupted", reason: "user_stop", partial: "" },
    });
    expect(service.engine.played).not.toContain("stopped by its request");
    expect((await client.ended(front.clientRequestId)).data.terminal.status).toBe("completed");
  });

  it("that contradicts the turn in any identifier has no effect", async () => {
    const gate = createGate();
    service.engine.on("named wrongly", () => gate.opened);
    const { clientRequestId } = await client.start("named wrongly");
    const { sessionId, conversationId } = await client.event("query:started", clientRequestId);
    const elsewhere = await client.start("elsewhere");
    const other = await client.event("query:started", elsewhere.clientRequestId);
    await client.ended(elsewhere.clientRequestId);
    for (const named of [
      { sessionId, agentId: "boss" },
      { sessionId, conversationId: other.conversationId },
      { sessionId, clientRequestId: elsewhere.clientRequestId },
      { sessionId: other.sessionId, clientRequestId },
      { clientRequestId, agentId: "boss" },
      { clientRequestId, conversationId: other.conversationId },
      { sessionId, conversationId, clientRequestId, agentId: "boss" },
      { conversationId },
    ])
      client.socket.emit("query:abort", named);
    const after = await client.start("after wrong aborts");
    await client.ended(after.clientRequestId);
    gate.open();
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("completed");
  });

  it("with all identifiers of the turn stops it", async () => {
    service.engine.on("named completely", (_turn, context) => untilStopped(context));
    const { clientRequestId } = await client.start("named completely");
    const { sessionId, conversationId, agentId } = await client.event("query:started", clientRequestId);
    client.socket.emit("query:abort", { sessionId, conversationId, agentId, clientRequestId });
    expect((await client.ended(clientRequestId)).data.terminal).toMatchObject({ status: "interrupted", reason: "user_stop" });
  });

  it("of another user's session does nothing", async () => {
    const gate = createGate();
    service.engine.on("guarded turn", () => gate.opened);
    const { clientRequestId } = await client.start("guarded turn");
    const { sessionId } = await client.event("query:started", clientRequestId);
    const stranger = await service.connect("member");
    stranger.socket.emit("query:abort", { sessionId, clientRequestId });
    stranger.socket.emit("query:abort", { sessionId });
    stranger.socket.emit("query:abort", { clientRequestId });
    const theirs = await stranger.start("mine");
    await stranger.ended(theirs.clientRequestId);
    gate.open();
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("completed");
  });

  it("with a payload that does not fit is dropped, and the connection stays", async () => {
    client.socket.emit("query:abort", { sessionId: 1 });
    client.socket.emit("query:abort");
    const after = await client.start("after bad aborts");
    expect((await client.ended(after.clientRequestId)).event).toBe("query:complete");
  });
});

describe("a turn that fails", () => {
  it("is query:error with a code, a failed run, and a failed receipt; what was said is kept; the session goes on", async () => {
    service.engine.on("breaks", async (_turn, { say }) => {
      await say({ type: "text", delta: "half" });
      throw new Error("secret hunter2");
    });
    const { clientRequestId } = await client.start("breaks");
    const { event, data } = await client.ended(clientRequestId);
    expect([event, data.code]).toEqual(["query:error", "internal_error"]);
    expect(JSON.stringify([client.of(clientRequestId), service.telemetry.lines])).not.toContain("hunter2");
    const { body: run } = await service.call("owner", "GET", `/api/runs/${data.runId}`);
    expect(run).toMatchObject({ status: "failed", failure_reason: "error", completed_at: expect.any(String) });
    const { body } = await service.call("owner", "GET", `/api/runs/${data.runId}/receipt`);
    expect(body.receipts).toMatchObject([{ output: "half", outcome: { status: "failed" } }]);
    const next = await client.followUp(data.sessionId, "again");
    await client.ended(next.clientRequestId);
    const { body: after } = await service.call("owner", "GET", `/api/runs/${data.runId}`);
    expect(after).toMatchObject({ status: "idle", messageCount: 4 });
    expect(after.failure_reason).toBeUndefined();
  });

  it("its limit of model calls is a partial receipt and a reason", async () => {
    service.engine.on("cut", async () => ({ end: "max_turns" as const, output: "unfinished" }));
    const { clientRequestId } = await client.start("cut");
    const { data } = await client.ended(clientRequestId);
    expect(data.terminal).toMatchObject({ status: "completed", reason: "max_turns" });
    const { body } = await service.call("owner", "GET", `/api/runs/${data.runId}/receipt`);
    expect(body.receipts).toMatchObject([{ outcome: { status: "partial", auto_completed: false } }]);
  });
});

describe("POST /api/query/client-requests/lookup (4.6, 2.13)", () => {
  it("answers in the order of the requests, with the registry's facts", async () => {
    const { clientRequestId } = await client.start("looked up");
    const { data } = await client.ended(clientRequestId);
    const { status, body } = await service.call("owner", "POST", lookup, {
      agentId: "helper",
      requests: [{ clientRequestId: "never-seen" }, { clientRequestId }],
    });
    expect(status).toBe(200);
    // Each process of a cluster has its own.
    const handshakes = [1, 2, 3].map(() => service.call("owner", "GET", "/api/handshake"));
    const instances = (await Promise.all(handshakes)).map(({ body: { serverInstanceId } }) => serverInstanceId);
    expect(body).toEqual({
      protocolVersion: 1,
      serverInstanceId: expect.toSatisfy((id: string) => instances.includes(id)),
      observedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      autoReplayRetentionMs: 600_000,
      tombstoneRetentionMs: 86_400_000,
      results: [
        { clientRequestId: "never-seen", status: "absent" },
        {
          clientRequestId,
          status: "committed",
          committedAt: expect.stringMatching(/Z$/),
          sessionId: data.sessionId,
          committedServerInstance: "current",
          executionWitness: "user-message",
        },
      ],
    });
  });

  it("an ID used for another agent, conversation or user message is unknown: automatic replay stops", async () => {
    const { clientRequestId, sent } = await client.start("specific");
    const { data } = await client.ended(clientRequestId);
    const status = async (more: object, request: object = {}) =>
      (await service.call("owner", "POST", lookup, { agentId: "helper", requests: [{ clientRequestId, ...request }], ...more }))
        .body.results[0].status;
    expect(await status({})).toBe("committed");
    expect(await status({ conversationId: data.conversationId }, { userMessageId: sent["userMessageId"] })).toBe("committed");
    expect(await status({ agentId: "second" })).toBe("unknown");
    expect(await status({ conversationId: "conv_other" })).toBe("unknown");
    expect(await status({}, { userMessageId: "other" })).toBe("unknown");
  });

  it.each([
    ["no agentId", { requests: [{ clientRequestId: "x" }] }],
    ["no requests", { agentId: "helper", requests: [] }],
    ["101 requests", { agentId: "helper", requests: Array.from({ length: 101 }, () => ({ clientRequestId: "x" })) }],
    ["an undeclared field", { agentId: "helper", requests: [{ clientRequestId: "x" }], more: 1 }],
    ["an undeclared field of an item", { agentId: "helper", requests: [{ clientRequestId: "x", more: 1 }] }],
    ["an empty ID", { agentId: "helper", requests: [{ clientRequestId: "" }] }],
    ["an ID of 257 characters", { agentId: "helper", requests: [{ clientRequestId: "x".repeat(257) }] }],
    ["an empty userMessageId", { agentId: "helper", requests: [{ clientRequestId: "x", userMessageId: "" }] }],
    ["something else", [1]],
  ])("400 'client request lookup body does not match schema' for %s", async (_what, body) => {
    const answer = await service.call("owner", "POST", lookup, body);
    expect([answer.status, answer.body.error]).toEqual([400, "client request lookup body does not match schema"]);
  });

  it("takes 100 requests, and IDs of 256 characters", async () => {
    const requests = Array.from({ length: 100 }, (_, at) => ({ clientRequestId: `${at}`.padEnd(256, "x") }));
    const { status, body } = await service.call("owner", "POST", lookup, { agentId: "helper", requests });
    expect([status, body.results.length]).toEqual([200, 100]);
  });
});
