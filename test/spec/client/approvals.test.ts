import { functionTools } from "@portico/adapters/tools/functions";
import { type AgentClient, type ApprovalChange, connectAgent, type Query } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, type Holder, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";

const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };

/** What the tool did. */
let done: unknown[];
let service: AgentService;
const clients: AgentClient[] = [];
const connect = (holder: Holder) => {
  const client = connectAgent({ baseURL: service.url, token: TOKENS[holder], transports: ["websocket"] });
  clients.push(client);
  return client;
};
beforeEach(async () => {
  done = [];
  const erase = {
    ...toolOf("erase", { inputSchema, riskLevel: "critical", requiresConfirmation: true }),
    run: async (args: unknown) => (done.push(args), "It is erased"),
  };
  service = await startAgentService({
    agents: new Map([["looper", { name: "Looper", tools: ["erase"] }]]),
    adapters: [functionTools({ tools: [erase] })],
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await service.close();
});

/** A query whose call waits, and what its messages tell of approvals from now on. */
async function asked(client: AgentClient, prompt = "use erase") {
  const query = client.submit({ agentId: "looper", prompt });
  const changes = changesOf(query);
  const { value: first } = await changes.next();
  const { runId = "" } = (await query.started)!;
  return { query, changes, runId, callId: first!.callId, first: first! };
}
async function* changesOf(query: Query): AsyncGenerator<ApprovalChange, void> {
  for await (const message of query) if (message.type === "approval") yield message.content;
}
const waiting = (client: AgentClient) => Array.fromAsync(client.waitingApprovals());

describe("a query tells of its calls that wait for a person", () => {
  it("and the client lists and approves them", async () => {
    const client = connect("member");
    const { query, changes, runId, callId, first } = await asked(client);
    expect(first).toEqual({
      ...{ callId, toolId: "erase", name: "erase", status: "waiting", riskLevel: "critical" },
      arguments: { path: "use erase" },
      expiresAt: expect.any(String),
    });
    expect(await waiting(client)).toMatchObject([{ runId, callId, agentId: "looper", userId: "member", toolId: "erase" }]);
    const decided = await client.decideApproval({ runId, callId }, { decision: "approve", comment: "Go on" });
    expect(decided).toMatchObject({ runId, callId, decision: "approve" });
    expect((await changes.next()).value).toMatchObject({
      ...{ callId, status: "approved", decidedBy: "member", comment: "Go on" },
    });
    expect((await query.ended).status).toBe("completed");
    expect([done, await waiting(client)]).toEqual([[{ path: "use erase" }], []]);
    await expect(client.decideApproval({ runId, callId }, { decision: "approve" })).rejects.toMatchObject({
      code: "approval_decided",
    });
  });

  it("and the client approves with other arguments, or rejects", async () => {
    const client = connect("member");
    const one = await asked(client);
    await expect(client.decideApproval(one, { decision: "approve", arguments: { path: 1 } })).rejects.toMatchObject({
      code: "arguments_invalid",
    });
    await client.decideApproval(one, { decision: "approve", arguments: { path: "other" } });
    expect((await one.changes.next()).value).toMatchObject({ status: "approved", arguments: { path: "other" } });
    const two = await asked(client);
    await client.decideApproval(two, { decision: "reject", comment: "Not this" });
    expect((await two.changes.next()).value).toMatchObject({ status: "rejected", comment: "Not this" });
    await Promise.all([one.query.ended, two.query.ended]);
    expect(done).toEqual([{ path: "other" }]);
  });

  it("and an aborted one withdraws them", async () => {
    const client = connect("member");
    const { query, changes } = await asked(client);
    query.abort();
    expect((await query.ended).status).toBe("interrupted");
    expect((await changes.next()).value?.status).toBe("withdrawn");
    expect(await waiting(client)).toEqual([]);
  });
});

it("waitingApprovals reads page after page: an owner's all, a member's own", async () => {
  const client = connect("member");
  const prompts = Array.from({ length: 51 }, (_, at) => `use erase ${at}`);
  const queries = prompts.map((prompt) => client.submit({ agentId: "looper", prompt }));
  const count = async (holder: Holder) => (await waiting(connect(holder))).length;
  await expect.poll(() => count("owner"), { timeout: 30_000 }).toBe(51);
  expect([await count("member"), await count("other")]).toEqual([51, 0]);
  for (const query of queries) query.abort();
}, 60_000);

it("a standing consent is granted with a decision, listed and revoked", async () => {
  const client = connect("member");
  const first = await asked(client);
  await client.decideApproval(first, { decision: "approve", standing: true });
  await first.query.ended;
  const second = client.submit({ agentId: "looper", prompt: "use erase" });
  expect((await second.ended).status).toBe("completed");
  expect(done).toHaveLength(2);
  const [consent] = await client.toolConsents();
  expect(consent).toMatchObject({ userId: "member", agentId: "looper", toolId: "erase" });
  expect(await connect("other").toolConsents()).toEqual([]);
  await client.revokeToolConsent(consent!.id);
  await expect(client.revokeToolConsent(consent!.id)).rejects.toMatchObject({ code: "consent_not_found" });
  await asked(client);
  expect(done).toHaveLength(2);
});

it("the calls of approvals end with the caller's signal, and with the client", async () => {
  const client = connect("member");
  const signal = AbortSignal.abort(new Error("Enough"));
  const call = { runId: "run_x", callId: "y" };
  await expect(client.decideApproval(call, { decision: "reject" }, { signal })).rejects.toThrow("Enough");
  await expect(Array.fromAsync(client.waitingApprovals({ signal }))).rejects.toThrow("Enough");
  client.close();
  await expect(client.toolConsents()).rejects.toThrow("closed");
  await expect(client.revokeToolConsent("x")).rejects.toThrow("closed");
});
