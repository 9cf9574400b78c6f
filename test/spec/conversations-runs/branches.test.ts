import type { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, type Holder, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { promptOf } from "../../harness/scripted-agent.ts";

let service: AgentService;
let member: AgentClient;
let conversationId: string;
const turns: ports.AgentTurn[] = [];
/** A turn that says `wait` ends when this opens. */
let gate = createGate();

beforeAll(async () => {
  service = await startAgentService();
  member = await service.connect("member");
  service.engine.otherwise(async (turn, { say }) => {
    turns.push(turn);
    if (promptOf(turn) === "wait") await gate.opened;
    await say({ type: "text", delta: `to ${promptOf(turn)} (${turns.length})` });
  });
});
afterAll(() => service.close());
beforeEach(async () => {
  turns.length = 0;
  gate = createGate();
  conversationId = (await told("one", {}))["conversationId"]!;
  await told("two");
});

/** Submits a query to the conversation, and waits for its end. */
async function told(prompt: string, options: Record<string, unknown> = { conversationId }): Promise<Record<string, string>> {
  const submitted = await member.start(prompt, {}, options);
  expect([submitted.status, submitted.body.code]).toEqual([202, undefined]);
  return (await member.ended(submitted.clientRequestId)).data;
}
const submit = (prompt: string, options: Record<string, unknown>) => member.start(prompt, {}, { conversationId, ...options });
const read = async (query = "", holder: Holder = "member") =>
  service.call(holder, "GET", `/api/conversations/${conversationId}/messages${query}`);
const page = async (query = "") => (await read(query)).body;
const textsOf = (body: any): string[] => body.messages.map(({ parts }: any) => parts[0].text);
const choose = (branch: unknown, holder: Holder = "member", id = conversationId) =>
  service.call(holder, "PUT", `/api/conversations/${id}/branch`, { branch });
/** The id of the message with this text, in whichever branch. */
const idOf = async (text: string, query = ""): Promise<string> =>
  (await page(query)).messages.find(({ parts }: any) => parts[0].text === text).id;
const historyOf = ({ history }: ports.AgentTurn) => history.map(({ parts }) => "text" in parts[0]! && parts[0].text);

describe("a query with options.replaces", () => {
  it("takes the place of a user's message: what followed stays in another branch", async () => {
    await told("two, better", { conversationId, replaces: await idOf("two") });
    expect(historyOf(turns[2]!)).toEqual(["one", "to one (1)"]);
    const after = await page();
    expect(textsOf(after)).toEqual(["one", "to one (1)", "two, better", "to two, better (3)"]);
    expect(after.branch).toBe(2);
    expect(after.branches).toEqual([{ messageId: after.messages[2].id, sequence: 5, position: 2, branches: [1, 2] }]);
    const first = await page("?branch=1");
    expect(textsOf(first)).toEqual(["one", "to one (1)", "two", "to two (2)"]);
    expect(first.branches).toEqual([{ messageId: first.messages[2].id, sequence: 3, position: 1, branches: [1, 2] }]);
    // The next turn continues the new branch.
    await told("three");
    expect(historyOf(turns[3]!)).toEqual(["one", "to one (1)", "two, better", "to two, better (3)"]);
  });

  it("may take the place of the first message, and of a message of another branch", async () => {
    const two = await idOf("two");
    await told("uno", { conversationId, replaces: await idOf("one") });
    expect(historyOf(turns[2]!)).toEqual([]);
    expect(textsOf(await page())).toEqual(["uno", "to uno (3)"]);
    await told("dos", { conversationId, replaces: two });
    const after = await page();
    expect(textsOf(after)).toEqual(["one", "to one (1)", "dos", "to dos (4)"]);
    expect(after.branches.map(({ position, branches }: any) => [position, branches])).toEqual([
      [1, [3, 2]],
      [2, [1, 3]],
    ]);
  });

  it("is shown as one of three after the second edit", async () => {
    for (const prompt of ["b", "c"]) await told(prompt, { conversationId, replaces: await idOf("two", "?branch=1") });
    expect((await page()).branches).toMatchObject([{ position: 3, branches: [1, 2, 3] }]);
    expect((await page("?branch=2")).branches).toMatchObject([{ position: 2, branches: [1, 2, 3] }]);
  });

  it("pages back within its branch", async () => {
    await told("two, better", { conversationId, replaces: await idOf("two") });
    const newest = await page("?limit=3");
    expect(textsOf(newest)).toEqual(["to one (1)", "two, better", "to two, better (3)"]);
    expect(newest.before).toBe(2);
    const oldest = await page("?limit=3&before=2");
    expect([textsOf(oldest), oldest.before, oldest.branches]).toEqual([["one"], undefined, []]);
    expect((await page("?limit=2")).before).toBe(5);
    expect(textsOf(await page("?limit=2&before=5"))).toEqual(["one", "to one (1)"]);
  });
});

describe("a query with options.regenerates", () => {
  it("makes a turn again from the same user's message, with its metadata", async () => {
    await told("three", { conversationId, metadata: { ticket: "T-1" } });
    await told("", { conversationId, regenerates: await idOf("to three (3)") });
    expect(promptOf(turns[3]!)).toBe("three");
    expect(historyOf(turns[3]!)).toEqual(historyOf(turns[2]!));
    const after = await page();
    expect(textsOf(after)).toEqual(["one", "to one (1)", "two", "to two (2)", "three", "to three (4)"]);
    expect(after.messages[4].metadata).toEqual({ ticket: "T-1" });
    expect(after.branches).toMatchObject([{ messageId: after.messages[4].id, position: 2, branches: [1, 2] }]);
    // Again, of the answer that was made again.
    await told("", { conversationId, regenerates: await idOf("to three (4)") });
    expect((await page()).branches).toMatchObject([{ position: 3, branches: [1, 2, 3] }]);
  });

  it.each([
    ["a prompt", "hello", {}],
    ["files", "", { fileReferences: ["/some/file"] }],
  ])("with %s is 400", async (_name, prompt, more) => {
    const regenerates = await idOf("to two (2)");
    expect(await submit(prompt, { regenerates, ...more })).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  });
});

describe("POST /api/agents/:id/ask", () => {
  const ask = (body: object) =>
    service.call("member", "POST", "/api/agents/helper/ask", { conversationId, ...body }, { prefer: "wait=30" });

  it("takes replaces and regenerates", async () => {
    const replaced = await ask({ prompt: "dos", replaces: await idOf("two") });
    expect(replaced.body).toMatchObject({ status: "completed", output: "to dos (3)" });
    expect((await ask({ regenerates: await idOf("to dos (3)") })).body).toMatchObject({ output: "to dos (4)" });
    expect(textsOf(await page())).toEqual(["one", "to one (1)", "dos", "to dos (4)"]);
  });
});

describe("PUT /api/conversations/:id/branch", () => {
  it("chooses the branch that is shown, and that the next turn continues", async () => {
    await told("two, better", { conversationId, replaces: await idOf("two") });
    expect(await choose(1)).toMatchObject({ status: 200, body: { conversationId, branch: 1 } });
    expect(textsOf(await page())).toEqual(["one", "to one (1)", "two", "to two (2)"]);
    await told("three");
    expect(historyOf(turns[3]!)).toEqual(["one", "to one (1)", "two", "to two (2)"]);
    const after = await page();
    expect(textsOf(after)).toEqual(["one", "to one (1)", "two", "to two (2)", "three", "to three (4)"]);
    expect(after.branches).toMatchObject([{ sequence: 3, position: 1, branches: [1, 2] }]);
    expect((await choose(2)).status).toBe(200);
    await told("drei");
    expect(historyOf(turns[4]!)).toEqual(["one", "to one (1)", "two, better", "to two, better (3)"]);
    expect((await page()).branches).toMatchObject([{ sequence: 5, position: 2, branches: [1, 2] }]);
  });

  it("changes nothing if the chosen branch is chosen again, or another branch without a message in between", async () => {
    expect((await choose(1)).status).toBe(200);
    await told("dos", { conversationId, replaces: await idOf("two") });
    for (const branch of [1, 2, 1, 2, 2]) expect((await choose(branch)).status).toBe(200);
    await told("three");
    expect(historyOf(turns[3]!)).toEqual(["one", "to one (1)", "dos", "to dos (3)"]);
  });

  it("is for the conversation's user and the owner: others learn nothing of it, and of no branch", async () => {
    expect((await choose(1, "owner")).status).toBe(200);
    for (const branch of [1, 7]) {
      expect(await choose(branch, "other")).toMatchObject({ status: 404, body: { code: "conversation_not_found" } });
      expect(await choose(branch, "member", "conv_none")).toMatchObject({
        status: 404,
        body: { code: "conversation_not_found" },
      });
    }
    expect((await read("?branch=7", "other")).body.code).toBe("conversation_not_found");
  });

  it("404 for an unknown branch, 400 for what is not a branch", async () => {
    expect(await choose(2)).toMatchObject({ status: 404, body: { code: "branch_not_found" } });
    expect(await read("?branch=2")).toMatchObject({ status: 404, body: { code: "branch_not_found" } });
    for (const branch of [0, 1.5, "1", null]) expect((await choose(branch)).status).toBe(400);
    for (const query of ["?branch=0", "?branch=x", "?branch=", "?branch=1&branch=1"])
      expect((await read(query)).body.code).toBe("invalid_pagination");
  });
});

describe("a message that is not there", () => {
  it.each([
    ["an unknown message", { replaces: "none" }, 404, "message_not_found"],
    ["an unknown answer", { regenerates: "none" }, 404, "message_not_found"],
    ["both", { replaces: "a", regenerates: "b" }, 400, "invalid_request"],
  ])("%s is refused", async (_name, options, status, code) => {
    const prompt = "regenerates" in options ? "" : "x";
    expect(await submit(prompt, options)).toMatchObject({ status, body: { code } });
    expect(textsOf(await page())).toHaveLength(4);
  });

  it("a conversation is needed", async () => {
    const { status, body } = await member.start("x", {}, { replaces: await idOf("two") });
    expect([status, body.code]).toEqual([400, "invalid_request"]);
  });

  it("a message of the wrong kind is 400", async () => {
    const [user, answer] = [await idOf("two"), await idOf("to two (2)")];
    for (const { status, body } of [await submit("x", { replaces: answer }), await submit("", { regenerates: user })])
      expect([status, body.code]).toEqual([400, "wrong_message_kind"]);
  });

  it("a message of another conversation is unknown, and in a conversation of another user the conversation is", async () => {
    const replaces = await idOf("two");
    const own = (await told("elsewhere", {}))["conversationId"]!;
    expect(await member.start("x", {}, { conversationId: own, replaces })).toMatchObject({
      status: 404,
      body: { code: "message_not_found" },
    });
    const other = await service.connect("other");
    for (const message of [replaces, "none"])
      expect(await other.start("x", {}, { conversationId, replaces: message })).toMatchObject({
        status: 404,
        body: { code: "conversation_not_found" },
      });
  });
});

describe("while a turn of the conversation has not ended", () => {
  it("a branch is neither begun nor chosen: 409, also while the turn waits for another one", async () => {
    const two = await idOf("two");
    await told("dos", { conversationId, replaces: two });
    const running = await submit("wait", {});
    await member.event("query:started", running.clientRequestId);
    const waiting = await submit("four", {});
    const refused = { status: 409, body: { code: "turn_not_ended" } };
    expect(await choose(1)).toMatchObject(refused);
    expect(await submit("x", { replaces: two })).toMatchObject(refused);
    gate.open();
    await member.ended(waiting.clientRequestId);
    expect((await choose(1)).status).toBe(200);
  });

  it("of two edits at once, one is accepted", async () => {
    const replaces = await idOf("two");
    const both = await Promise.all([submit("wait", { replaces }), submit("wait", { replaces })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    gate.open();
    await member.ended(both.find(({ status }) => status === 202)!.clientRequestId);
    expect((await page()).branches).toMatchObject([{ position: 2, branches: [1, 2] }]);
  });
});

describe("a conversation with branches", () => {
  it("accepts the same submission again as a duplicate", async () => {
    const first = await submit("dos", { replaces: await idOf("two") });
    await member.ended(first.clientRequestId);
    const again = await service.call("member", "POST", "/api/query/start", first.sent);
    expect(again).toMatchObject({ status: 202, body: { duplicate: true } });
    expect((await page()).branches).toMatchObject([{ branches: [1, 2] }]);
  });

  it("has one branch again when it is cleared", async () => {
    await told("dos", { conversationId, replaces: await idOf("two") });
    expect((await service.call("member", "POST", `/api/conversations/${conversationId}/clear`)).status).toBe(200);
    expect(await page()).toMatchObject({ branch: 1, messages: [], branches: [] });
    await told("fresh");
    expect(await page()).toMatchObject({ branch: 1, messages: [{ sequence: 1 }, { sequence: 2 }] });
    expect((await choose(2)).status).toBe(404);
  });

  it("changes its branch at most 256 times: further changes are 409", { timeout: 120_000 }, async () => {
    const replaces = await idOf("two");
    for (let number = 0; number < 256; number++) await told("dos", { conversationId, replaces });
    const refused = { status: 409, body: { code: "too_many_branches", retryable: false } };
    expect(await submit("dos", { replaces })).toMatchObject(refused);
    expect(await choose(1)).toMatchObject(refused);
    expect((await page("?branch=1")).branches[0].branches).toHaveLength(257);
    await told("three");
    expect((await page()).branches[0].position).toBe(257);
  });
});
