import { messagesHttp } from "@portico/adapters/models/messages-http";
import { recordUsage } from "@portico/adapters/usage/records";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { defineAdapter, ports } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { usagePage } from "@portico/operator/usage";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type LoopedAgents, startLoopedAgents } from "../../harness/looped-agents.ts";
import { openNode } from "../../harness/run-node.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { CUT, events, json } from "../../harness/upstream-answers.ts";

const prices = {
  currency: "EUR",
  models: [{ provider: "messages", model: "echo-large", from: "2026-01-01", input: 1_000_000, output: 2_000_000 }],
};
const script = messagesEvents("one two");
const begun = script.slice(0, script.findIndex((event) => event.includes("one")) + 1);
const refusal = json(400, { type: "error", error: { type: "invalid_request_error", message: "no hidden-word" } });

let agents: LoopedAgents;
let tokens: ReturnType<typeof createSafeTokens>;
beforeAll(async () => {
  agents = await startLoopedAgents(
    { talker: { provider: "messages" }, chatter: { provider: "chat-completions" } },
    { adapters: [recordUsage({ prices })], plugins: [usagePage({}), modelProxy({})] },
  );
  const { app } = agents.service;
  const [records, secrets, clock, ids] = [
    app.port(ports.records),
    app.port(ports.secrets),
    app.port(ports.clock),
    app.port(ports.ids),
  ];
  tokens = createSafeTokens({ records, secrets, clock, ids });
});
afterAll(() => agents?.[Symbol.asyncDispose]());
beforeEach(() => agents.upstream.reset());

const read = async (query: string, holder: "owner" | "member" | "other" | "service" = "owner") =>
  agents.service.call(holder, "GET", `/api/usage?${query}`);
/** The sums of what a query selects, soon: the ends of calls are stored within a second. */
const sums = (query: string) => expect.poll(async () => (await read(query)).body.groups[0], { timeout: 10_000 });

async function proxied(providerId: string, path: string, body: object): Promise<{ tokenId: string; text: string }> {
  const { tokenId, token } = await tokens.issue({ providerId });
  const response = await agents.service.app.surface("proxy").fetch(
    new Request(`http://proxy${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token.reveal()}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "echo-large", max_tokens: 50, messages: [{ role: "user", content: "hello" }], ...body }),
    }),
  );
  return { tokenId, text: await response.text() };
}

describe("the usage of an agent's turn", () => {
  it("is recorded with its user, agent, provider and model, and its price", async () => {
    agents.upstream.answerAll(events(script));
    await agents.ask("talker", "hello");
    await sums("by=source,provider,model,userId,agentId&agentId=talker").toMatchObject({
      ...{ source: "agent", provider: "messages", model: "echo-large", userId: "owner", agentId: "talker" },
      ...{ calls: 1, unknown: 0, refused: 0, inputTokens: 7, outputTokens: 11, cost: 29, unpriced: 0 },
    });
  });

  it("is recorded of a turn that fails: a refused call as refused, and a broken one as unknown", async () => {
    const before = (await read("agentId=chatter")).body.groups[0]?.calls ?? 0;
    expect(before).toBe(0);
    agents.upstream.answerAll(refusal);
    expect((await agents.ask("chatter", "hello")).event).toBe("query:error");
    await sums("agentId=chatter").toMatchObject({ calls: 1, refused: 1, unknown: 0, inputTokens: 0 });
    agents.upstream.answerAll(events([...chatEvents("one two").slice(0, 2), CUT]));
    expect((await agents.ask("chatter", "hello")).event).toBe("query:error");
    // A broken call is repeated unless the agent has said something: what the provider was asked is what is recorded.
    await sums("agentId=chatter").toMatchObject({ calls: agents.upstream.requests.length, refused: 1 });
    expect((await read("agentId=chatter")).body.groups[0].unknown).toBe(agents.upstream.requests.length - 1);
  });

  it("is noted before the call is sent", async () => {
    let seen: any;
    agents.upstream.answerAll(async (exchange) => {
      seen = (await read("by=agentId&model=echo-large&agentId=talker")).body.groups[0];
      await events(script)(exchange);
    });
    const { body } = await read("agentId=talker");
    await agents.ask("talker", "hello");
    expect(seen.calls).toBe((body.groups[0]?.calls ?? 0) + 1);
    expect(seen.unknown).toBeGreaterThan(0);
    await sums("agentId=talker").toMatchObject({ unknown: 0 });
  });
});

describe("the usage of the proxy", () => {
  it.each([
    ["same protocol, whole", "messages", "/v1/messages", {}],
    ["same protocol, streamed", "messages", "/v1/messages", { stream: true }],
    [
      "same protocol, chat",
      "chat-completions",
      "/v1/chat/completions",
      { stream: true, stream_options: { include_usage: true } },
    ],
    ["converted, whole", "chat-completions", "/v1/messages", {}],
    ["converted, streamed", "messages", "/v1/chat/completions", { stream: true }],
  ])("is recorded by safe token: %s", async (_name, provider, path, body) => {
    const { tokenId, text } = await proxied(provider, path, body);
    expect(text).not.toBe("");
    await sums(`tokenId=${tokenId}&by=source,tokenId,provider`).toMatchObject({
      source: "proxy",
      provider,
      calls: 1,
      unknown: 0,
    });
    const { inputTokens, outputTokens } = (await read(`tokenId=${tokenId}`)).body.groups[0];
    expect([inputTokens > 0, outputTokens > 0]).toEqual([true, true]);
  });

  it("counts a refused call as refused, and a broken one as unknown", async () => {
    agents.upstream.answerAll(refusal);
    const refused = await proxied("messages", "/v1/messages", {});
    await sums(`tokenId=${refused.tokenId}`).toMatchObject({ calls: 1, refused: 1, unknown: 0 });
    agents.upstream.answerAll(events([...begun, CUT]));
    const broken = await proxied("messages", "/v1/messages", { stream: true }).catch(() => undefined);
    if (broken) await sums(`tokenId=${broken.tokenId}`).toMatchObject({ calls: 1, refused: 0, unknown: 1 });
    await sums("source=proxy&by=source").toMatchObject({ unknown: 1 });
  });
});

describe("GET /api/usage", () => {
  it("shows members their own usage only, and nothing to tokens without a user", async () => {
    const member = await agents.service.connect("member");
    agents.upstream.answerAll(events(script));
    const { clientRequestId } = await member.start("hello", {}, { agentId: "talker" });
    await member.ended(clientRequestId);
    const { body } = await read("by=userId", "member");
    expect(body.groups.map(({ userId }: any) => userId)).toEqual(["member"]);
    expect((await read("by=userId", "other")).body.groups).toEqual([]);
    expect((await read("userId=owner", "member")).status).toBe(403);
    expect((await read("", "service")).status).toBe(403);
    expect((await agents.service.call(undefined, "GET", "/api/usage")).status).toBe(401);
  });

  it.each(["by=prompt", "step=week", "since=yesterday", "userid=a", "source=plugin"])("refuses %s", async (query) => {
    expect((await read(query)).status).toBe(400);
  });

  it("has its times, its currency and its steps", async () => {
    const { body } = await read("step=minute&by=provider&since=2020-01-01T00:00:30Z");
    expect(body).toMatchObject({ since: "2020-01-01T00:00:00.000Z", currency: "EUR" });
    expect(body.groups.length).toBeGreaterThan(0);
    for (const { at } of body.groups) expect(at).toMatch(/:00\.000Z$/);
  });
});

it("the usage of a node that calls a model is recorded with its workflow", async () => {
  const { records } = createMemoryRecords();
  const store = defineAdapter({ name: "records/one", port: ports.records, needs: {}, open: (): ports.Records => records })();
  const telemetry = createMemoryTelemetry();
  const others = [store, systemClock(), randomIds(), memoryTelemetry({ telemetry })];
  const provider = messagesHttp({ id: "main", type: "vendor", baseUrl: agents.upstream.baseUrl, models: ["echo-large"] });
  const usage = await openAdapter(recordUsage({}), others);
  const opened = defineAdapter({ name: "usage/one", port: ports.usage, needs: {}, open: (): ports.Usage => usage.port })();
  await using node = await openNode(modelNode(), [provider, opened, ...others]);
  await node.run({ prompt: "hello" });
  const { groups } = await usage.port.read({ since: 0, until: Date.now() + 1, by: ["source", "workflowId", "model"] });
  expect(groups).toMatchObject([
    { subject: { source: "workflow", workflowId: expect.any(String), model: "echo-large" }, sums: { calls: 1, unknown: 0 } },
  ]);
  await usage.close();
});
