import { recordUsage } from "@portico/adapters/usage/records";
import { functionTools } from "@portico/adapters/tools/functions";
import { usagePage } from "@portico/operator/usage";
import { afterEach, describe, expect, it } from "vitest";
import { startBody } from "../../harness/agent-app.ts";
import { type LoopedAgents, startLoopedAgents } from "../../harness/looped-agents.ts";
import { messagesEvents, toolEvents } from "../../harness/stream-scripts.ts";
import { events } from "../../harness/upstream-answers.ts";

const prices = { currency: "EUR", models: [{ model: "echo-large", from: "2026-01-01", input: 1_000_000, output: 0 }] };
const look = {
  name: "look",
  description: "Looks.",
  inputSchema: { type: "object" },
  riskLevel: "low" as const,
  requiresConfirmation: false,
  run: async () => "seen",
};
const tool = functionTools({ tools: [look] });

let agents: LoopedAgents | undefined;
afterEach(() => agents?.[Symbol.asyncDispose]());

type LimitsByScope = Record<string, Record<string, number>>;
async function start(limits: LimitsByScope, agent: object = {}): Promise<LoopedAgents> {
  agents = await startLoopedAgents(
    { talker: { provider: "messages", ...agent }, other: { provider: "messages" } },
    {
      adapters: [recordUsage({ prices }), tool],
      plugins: [usagePage({})],
      runtime: { limits },
      isOneExecuting: true,
    },
  );
  // A call with 7 tokens in and 11 out.
  agents.upstream.answerAll(events(messagesEvents("one two")));
  return agents;
}

async function submit({ service, client }: LoopedAgents, agentId = "talker") {
  return service.call("owner", "POST", "/api/query/start", startBody(client, "hello", {}, { agentId }));
}

/** The answers to as many queries as a cluster has processes: the next one gets each. */
async function statuses(service: LoopedAgents): Promise<readonly number[]> {
  return Promise.all([submit(service), submit(service), submit(service)]).then((all) => all.map(({ status }) => status));
}
const REFUSED = [429, 429, 429];

/** Other processes see a call some seconds later. */
const SOON = { timeout: 15_000, interval: 250 };

describe("a query over a limit of the day", () => {
  it.each<[string, LimitsByScope, object, string, string]>([
    ["tokens of the user", { user: { tokensPerDay: 18 } }, {}, "tokensPerDay", "user"],
    ["tokens of the agent", { agent: { tokensPerDay: 18 } }, {}, "tokensPerDay", "agent"],
    ["tokens of the instance", { instance: { tokensPerDay: 18 } }, {}, "tokensPerDay", "instance"],
    ["money of the user", { user: { moneyPerDay: 7 } }, {}, "moneyPerDay", "user"],
    ["tokens in agent.json", {}, { limits: { tokensPerDay: 18 } }, "tokensPerDay", "agent"],
    [
      "tokens in agent.json, which cannot raise the instance's",
      { agent: { tokensPerDay: 18 } },
      { limits: { tokensPerDay: 1e9 } },
      "tokensPerDay",
      "agent",
    ],
  ])("is refused with 429, its code and its end: %s", async (_name, limits, agent, limit, scope) => {
    const service = await start(limits, agent);
    expect((await service.ask("talker", "hello")).event).toBe("query:complete");
    await expect.poll(() => statuses(service), SOON).toEqual(REFUSED);
    const { headers, body } = await submit(service);
    expect(body).toMatchObject({ code: "limit_reached", limit, scope, endsAt: expect.stringMatching(/T00:00:00\.000Z$/) });
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    const ofOther = await submit(service, "other");
    expect(ofOther.status).toBe(scope === "agent" ? 202 : 429);
  });

  it("stays accepted if it was accepted before the limit was reached", async () => {
    const service = await start({ user: { tokensPerDay: 18 } });
    const body = startBody(service.client, "hello", {}, { agentId: "talker" });
    expect((await service.service.call("owner", "POST", "/api/query/start", body)).status).toBe(202);
    await service.client.ended(body.clientRequestId);
    await expect.poll(() => statuses(service), SOON).toEqual(REFUSED);
    const again = await service.service.call("owner", "POST", "/api/query/start", body);
    expect([again.status, again.body.duplicate]).toEqual([202, true]);
  });
});

describe("a running turn", () => {
  it("stops before its next step when a limit of the day is reached, with a reason of its own", async () => {
    const service = await start({ user: { tokensPerDay: 18 } }, { tools: ["look"] });
    service.upstream.answerAll(events(toolEvents("look", {})));
    const { event, data, receipt } = await service.ask("talker", "hello", { maxTurns: 100 });
    expect([event, data.terminal]).toEqual(["query:complete", expect.objectContaining({ reason: "limit_reached" })]);
    expect(receipt).toMatchObject({ interruption_reason: "limit_reached", outcome: { status: "partial" } });
    expect(service.upstream.requests.length).toBeLessThan(100);
  });

  it("stops after its seconds, with a reason of its own", async () => {
    const service = await start({ agent: { turnSeconds: 1 } });
    service.upstream.answerAll(events([messagesEvents("one")[0]!, new Promise(() => {})]));
    const { event, data } = await service.ask("talker", "hello");
    expect([event, data.terminal]).toEqual(["query:complete", expect.objectContaining({ reason: "time_limit" })]);
  });

  it("keeps further queries of its user away while there are as many as allowed at once", async () => {
    const service = await start({ user: { turnsAtOnce: 1 } });
    const gate = Promise.withResolvers<void>();
    const script = messagesEvents("one two");
    service.upstream.answerAll(events([script[0]!, gate.promise.then(() => script[1]!), ...script.slice(2)] as never));
    const first = await service.client.start("hello", {}, { agentId: "talker" });
    await service.upstream.request(1);
    const { status, body } = await submit(service);
    expect([status, body.code, body.limit, body.scope]).toEqual([429, "limit_reached", "turnsAtOnce", "user"]);
    gate.resolve();
    await service.client.ended(first.clientRequestId);
    await expect.poll(async () => (await submit(service)).status, SOON).toBe(202);
  });
});
