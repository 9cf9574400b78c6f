import { createManualClock } from "@portico/adapters/clock/manual";
import { recordUsage } from "@portico/adapters/usage/records";
import { createApp, ports, Secret } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { readDayBudgets } from "@portico/plugins/conversations-runs/day-limits";
import { testing } from "@portico/presets/testing";
import { expect, it } from "vitest";

const prices = { currency: "EUR", models: [{ model: "dear", from: "2026-01-01", input: 1_000_000, output: 1_000_000 }] };
type Limits = NonNullable<Parameters<typeof conversationsRuns>[0]["limits"]>;

async function start(limits: Limits, timeZone = "UTC") {
  const clock = createManualClock({ startAt: "2026-11-29T10:00:00Z" });
  const app = await createApp({
    name: "budgets",
    extends: testing({
      clock,
      agents: new Map([
        ["lowered", { name: "Lowered", limits: { tokensPerDay: 20 } }],
        ["plain", { name: "Plain" }],
      ]),
      tokens: [
        { token: new Secret("owner-token"), userId: "owner", role: "owner" },
        { token: new Secret("member-token"), userId: "mia", role: "member" },
        { token: new Secret("service-token"), role: "service" },
      ],
    }),
    adapters: [recordUsage({ prices, timeZone })],
    plugins: [conversationsRuns({ version: "0", limits })],
  });
  const use = (userId: string, agentId: string, tokens: number) =>
    app
      .port(ports.usage)
      .note({ source: "agent", provider: "main", model: "dear", userId, agentId })
      .end({ inputTokens: tokens, outputTokens: 0 });
  const get = async (token = "owner-token") => {
    const headers = { "x-agent-service-token": token };
    const answer = await app.fetch(new Request("http://budgets/api/budgets", { headers }));
    return { status: answer.status, body: (await answer.json()) as any };
  };
  return { get, use, clock, [Symbol.asyncDispose]: () => app.close() };
}

it("tells the owner how much of each limit of the day is used, the fullest first, and when the day ends", async () => {
  await using service = await start(
    { instance: { moneyPerDay: 100 }, user: { tokensPerDay: 10 }, agent: { tokensPerDay: 50 } },
    "Europe/Berlin",
  );
  service.use("mia", "lowered", 9);
  service.use("owner", "plain", 2);
  const { status, body } = await service.get();
  expect(status).toBe(200);
  expect(body).toEqual({
    endsAt: "2026-11-29T23:00:00.000Z",
    currency: "EUR",
    omitted: 0,
    budgets: [
      { scope: "user", id: "mia", limit: "tokensPerDay", used: 9, most: 10 },
      // Its agent.json lowers the limit of agents.
      { scope: "agent", id: "lowered", limit: "tokensPerDay", used: 9, most: 20 },
      { scope: "user", id: "owner", limit: "tokensPerDay", used: 2, most: 10 },
      { scope: "instance", limit: "moneyPerDay", used: 11, most: 100 },
      { scope: "agent", id: "plain", limit: "tokensPerDay", used: 2, most: 50 },
    ],
  });
});

it("counts the calls of the present day alone", async () => {
  await using service = await start({ instance: { tokensPerDay: 10 } });
  service.use("mia", "plain", 9);
  await service.clock.advance(14 * 3_600_000);
  expect((await service.get()).body.budgets[0]).toMatchObject({ used: 0, most: 10 });
});

it("tells members their own, and tokens without a user nothing", async () => {
  await using service = await start({ instance: { tokensPerDay: 5 }, user: { tokensPerDay: 10 } });
  service.use("owner", "plain", 4);
  const { body } = await service.get("member-token");
  expect(body.budgets).toEqual([{ scope: "user", id: "mia", limit: "tokensPerDay", used: 0, most: 10 }]);
  expect((await service.get("service-token")).body).toEqual({ budgets: [], omitted: 0 });
  expect((await service.get("nothing")).status).toBe(401);
});

it("has at most 200 budgets, and says how many it leaves out", async () => {
  await using service = await start({ user: { tokensPerDay: 1000 } });
  // The agent with a limit of its own is the 211th budget.
  for (let user = 0; user < 210; user++) service.use(`u${user}`, "plain", user);
  const { body } = await service.get();
  expect([body.budgets.length, body.omitted, body.budgets[0].used]).toEqual([200, 11, 209]);
});

it("looks at the counts of a day a few times, however many users and agents it has", async () => {
  let looks = 0;
  const sums = {
    ...{ calls: 1, refused: 0, failed: 0, unknown: 0, cost: 1, unpriced: 0 },
    ...{ inputTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 1 },
  };
  const groups = Array.from({ length: 1000 }, (_, at) => ({
    get subject() {
      looks++;
      return { source: "agent", provider: "main", model: "dear", userId: `u${at % 500}`, agentId: `a${at % 250}` } as const;
    },
    sums,
  }));
  const today = async () => ({ since: 0, until: 1, currency: "EUR", groups });
  const agents = {
    list: async () => Array.from({ length: 250 }, (_, at) => ({ id: `a${at}`, definition: {} as ports.AgentDefinition })),
  };
  const limits = { user: { tokensPerDay: 10 }, agent: { moneyPerDay: 10 } };
  const { budgets, omitted } = await readDayBudgets({
    usage: { today } as Pick<ports.Usage, "today"> as ports.Usage,
    agents,
    limits,
  });
  expect([budgets.length + omitted, budgets[0]]).toEqual([
    750,
    { scope: "user", id: "u0", limit: "tokensPerDay", used: 6, most: 10 },
  ]);
  expect(looks).toBeLessThan(10 * groups.length);
});
