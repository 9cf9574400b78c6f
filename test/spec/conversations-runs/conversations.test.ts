import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, type Holder, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
let member: AgentClient;
const get = (path: string, holder: Holder = "member") => service.call(holder, "GET", path);
const clear = (id: string, holder: Holder = "member") => service.call(holder, "POST", `/api/conversations/${id}/clear`);
async function played(client: AgentClient, prompt: string, conversationId?: string) {
  const { clientRequestId } = await client.start(prompt, {}, conversationId === undefined ? {} : { conversationId });
  return { clientRequestId, ...(await client.ended(clientRequestId)).data } as Record<string, string>;
}

beforeAll(async () => {
  service = await startAgentService();
  member = await service.connect("member");
});
afterAll(() => service.close());

describe("GET /api/conversations (open points 7)", () => {
  it("lists the user's own, the last changed first, in pages; the owner sees all, others and programs nothing of it", async () => {
    const ids: string[] = [];
    for (const prompt of ["a", "b", "c"]) ids.unshift((await played(member, prompt))["conversationId"]!);
    await played(member, "again", ids[2]);
    const order = [ids[2], ids[0], ids[1]];
    const whole = (await get("/api/conversations")).body;
    expect(whole.conversations.map(({ conversationId }: any) => conversationId)).toEqual(order);
    expect(whole.conversations[0]).toEqual({
      conversationId: ids[2],
      userId: "member",
      agentId: "helper",
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      sessionId: expect.stringMatching(/^ses_/),
    });
    const first = (await get("/api/conversations?limit=2")).body;
    const second = (await get(`/api/conversations?limit=2&after=${encodeURIComponent(first.next)}`)).body;
    expect([...first.conversations, ...second.conversations].map(({ conversationId }) => conversationId)).toEqual(order);
    expect((await get("/api/conversations", "owner")).body.conversations).toHaveLength(3);
    expect((await get("/api/conversations", "other")).body.conversations).toEqual([]);
    expect((await get("/api/conversations", "service")).body.conversations).toEqual([]);
  });

  it.each(["limit=0", "limit=x", "after=nonsense", "after="])("400 for %s", async (query) => {
    expect((await get(`/api/conversations?${query}`)).status).toBe(400);
  });
});

describe("GET /api/conversations/:id/messages", () => {
  it("has the newest messages in order, and pages back with before", async () => {
    const { conversationId } = await played(member, "1");
    for (const prompt of ["2", "3"]) await played(member, prompt, conversationId);
    const texts = (body: any) => body.messages.map(({ role, parts }: any) => `${role}: ${parts[0].text}`);
    const path = `/api/conversations/${conversationId}/messages`;
    const all = (await get(path)).body;
    expect(texts(all)).toEqual([
      "user: 1",
      "assistant: You said: 1",
      "user: 2",
      "assistant: You said: 2",
      "user: 3",
      "assistant: You said: 3",
    ]);
    expect(all.before).toBeUndefined();
    const newest = (await get(`${path}?limit=4`)).body;
    expect(texts(newest)).toEqual(texts(all).slice(2));
    const older = (await get(`${path}?limit=4&before=${newest.before}`)).body;
    expect(texts(older)).toEqual(texts(all).slice(0, 2));
    expect(older.before).toBeUndefined();
    expect((await get(`${path}?before=1`)).body.messages).toEqual([]);
    expect((await get(path, "owner")).status).toBe(200);
    for (const query of ["before=0", "before=x", "limit=0"]) expect((await get(`${path}?${query}`)).status).toBe(400);
  });

  it("shows the metadata of a query on its user's message, and on no other (open points 7)", async () => {
    const metadata = { ticket: "T-17", "": "–" };
    const { clientRequestId } = await member.start("with metadata", {}, { metadata });
    const { conversationId } = (await member.ended(clientRequestId)).data;
    await played(member, "without", conversationId);
    const { messages } = (await get(`/api/conversations/${conversationId}/messages`)).body;
    expect(messages.map(({ role, metadata }: any) => [role, metadata])).toEqual([
      ["user", metadata],
      ["assistant", undefined],
      ["user", undefined],
      ["assistant", undefined],
    ]);
  });

  it("another user's conversation and a missing one are 404 in the same words", async () => {
    const { conversationId } = await played(member, "private");
    const answers = await Promise.all([
      get(`/api/conversations/${conversationId}/messages`, "other"),
      get("/api/conversations/conv_none/messages", "other"),
      get("/api/conversations/..%2F..%2Frecords/messages"),
      get("/api/conversations/%00/messages"),
      clear(conversationId!, "other"),
      clear("conv_none"),
    ]);
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [404, answers[0]!.body]));
  });
});

describe("POST /api/conversations/:id/clear (open points 7 and 10)", () => {
  it("removes the messages and ends the run; the next query begins a new session", async () => {
    const before = await played(member, "to be forgotten");
    const id = before["conversationId"]!;
    expect(await clear(id)).toMatchObject({ status: 200, body: { conversationId: id, cleared: true } });
    expect((await get(`/api/conversations/${id}/messages`)).body.messages).toEqual([]);
    expect((await member.followUp(before["sessionId"]!, "x")).status).toBe(404);
    const histories: unknown[] = [];
    service.engine.on("fresh", async (turn) => void histories.push(turn.history));
    const after = await played(member, "fresh", id);
    expect(after["sessionId"]).not.toBe(before["sessionId"]);
    expect(histories).toEqual([[]]);
  });

  it("first interrupts its running turn and those that wait; until it is done, queries get 409 busy", async () => {
    const ending = createGate();
    service.engine.on("running", async (_turn, context) => {
      await context.say({ type: "text", delta: "part" });
      await untilStopped(context).catch(async (error: unknown) => {
        await ending.opened;
        throw error;
      });
    });
    const running = await member.start("running");
    const { conversationId, sessionId } = await member.event("query:started", running.clientRequestId);
    const waiting = await member.start("waiting", {}, { conversationId });
    const clearing = clear(conversationId);
    const busy = () => member.start("too early", {}, { conversationId });
    await expect.poll(async () => (await busy()).status).toBe(409);
    expect((await busy()).body).toMatchObject({ busy: true, retryable: true });
    expect(await member.followUp(sessionId, "x")).toMatchObject({ status: 409, body: { busy: true } });
    ending.open();
    expect((await clearing).status).toBe(200);
    const interrupted = { terminal: { status: "interrupted", reason: "conversation_cleared" } };
    expect((await member.ended(running.clientRequestId)).data).toMatchObject(interrupted);
    expect((await member.ended(waiting.clientRequestId)).data).toMatchObject(interrupted);
    expect(service.engine.played).not.toContain("waiting");
    expect((await get(`/api/conversations/${conversationId}/messages`)).body.messages).toEqual([]);
    expect((await busy()).status).toBe(202);
  });

  it("of one that was never spoken in, twice, and twice at once, is the same", async () => {
    const { conversationId } = await played(member, "x");
    const twice = await Promise.all([clear(conversationId!), clear(conversationId!, "owner")]);
    expect([...twice, await clear(conversationId!)].map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});
