import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { recordUsage } from "@portico/adapters/usage/records";
import { ports } from "@portico/core";
import { measurements } from "@portico/operator/measurements";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LoopedAgents, startLoopedAgents } from "../../harness/looped-agents.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { CUT, events, hangUp, json, never } from "../../harness/upstream-answers.ts";

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
    { talker: { provider: "messages" } },
    {
      adapters: [recordUsage({ prices })],
      plugins: [measurements({ counted: createPrometheusMetrics() }), modelProxy({})],
    },
  );
  const { app } = agents.service;
  tokens = createSafeTokens({
    records: app.port(ports.records),
    secrets: app.port(ports.secrets),
    clock: app.port(ports.clock),
    ids: app.port(ports.ids),
  });
});
afterAll(() => agents?.[Symbol.asyncDispose]());
beforeEach(() => agents.upstream.reset());

const read = async (query: string, holder?: "owner" | "member" | "service") =>
  agents.service.call(holder, "GET", `/api/measurements?${query}`);

/** The sums of a series over all steps, and its last known latencies. */
async function seriesOf(by: string, value: string): Promise<Record<string, number> | undefined> {
  const { body } = await read(`by=${by}&top=20`, "owner");
  const found = body.series.find((one: any) => one.value === value);
  if (!found) return undefined;
  const lists = Object.entries(found).filter((entry): entry is [string, (number | null)[]] => Array.isArray(entry[1]));
  return Object.fromEntries(
    lists.flatMap(([name, list]) => {
      if (!/P\d\d$/.test(name)) return [[name, list.reduce<number>((sum, each) => sum + each!, 0)]];
      const known = list.findLast((each) => each !== null);
      return known === undefined ? [] : [[name, known]];
    }),
  );
}
/** Soon: the ends of calls are stored within a second. */
const soon = (by: string, value: string) => expect.poll(() => seriesOf(by, value), { timeout: 10_000 });

async function proxied(body: object, signal?: AbortSignal): Promise<{ tokenId: string; answered: Promise<unknown> }> {
  const { tokenId, token } = await tokens.issue({ providerId: "messages" });
  const sent = agents.service.app.surface("proxy").fetch(
    new Request("http://proxy/v1/messages", {
      method: "POST",
      headers: { authorization: `Bearer ${token.reveal()}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "echo-large", max_tokens: 50, messages: [{ role: "user", content: "hello" }], ...body }),
      ...(signal && { signal }),
    }),
  );
  return { tokenId, answered: (async () => (await sent).text())().catch(() => undefined) };
}

const LATENCY = { durationP50: expect.any(Number), durationP95: expect.any(Number) };
const FIRST = { firstTokenP50: expect.any(Number), firstTokenP95: expect.any(Number) };

describe("GET /api/measurements", () => {
  it("shows the calls of agents with their tokens, costs, latencies and times to the first token", async () => {
    agents.upstream.answerAll(events(script));
    await agents.ask("talker", "hello");
    const expected = { calls: 1, failed: 0, unknown: 0, inputTokens: 7, outputTokens: 11, cost: 29, ...LATENCY, ...FIRST };
    await soon("agentId", "talker").toMatchObject(expected);
    for (const [by, value] of [
      ["source", "agent"],
      ["model", "echo-large"],
      ["provider", "messages"],
      ["userId", "owner"],
    ] as const)
      expect(await seriesOf(by, value)).toMatchObject(expected);
  });

  it("shows streamed and whole calls of the proxy by safe token, and the time to the first byte of streamed ones alone", async () => {
    agents.upstream.answerAll(events(script));
    const streamed = await proxied({ stream: true });
    await streamed.answered;
    await soon("tokenId", streamed.tokenId).toMatchObject({ calls: 1, failed: 0, unknown: 0, ...LATENCY, ...FIRST });
    agents.upstream.answerAll(json(200, { type: "message", content: [], usage: { input_tokens: 1, output_tokens: 1 } }));
    const whole = await proxied({});
    await whole.answered;
    await soon("tokenId", whole.tokenId).toMatchObject({ calls: 1, failed: 0, unknown: 0, ...LATENCY });
    expect(await seriesOf("tokenId", whole.tokenId)).not.toHaveProperty("firstTokenP50");
  });

  it.each([
    ["refused", refusal],
    ["broken", events([...begun, CUT])],
    ["unanswered", hangUp()],
  ])("counts a %s call of the proxy as failed, without a latency", async (_name, answer) => {
    agents.upstream.answerAll(answer);
    const { tokenId, answered } = await proxied({ stream: true });
    await answered;
    await soon("tokenId", tokenId).toMatchObject({ calls: 1, failed: 1 });
    expect(await seriesOf("tokenId", tokenId)).not.toHaveProperty("durationP50");
  });

  it("does not count a call as failed whose caller left", async () => {
    agents.upstream.answerAll(never());
    const leaving = new AbortController();
    const { tokenId, answered } = await proxied({}, leaving.signal);
    await agents.upstream.request(0);
    leaving.abort();
    await answered;
    await soon("tokenId", tokenId).toMatchObject({ calls: 1, failed: 0, unknown: 1 });
    expect(await seriesOf("tokenId", tokenId)).not.toHaveProperty("durationP50");
  });

  it.each([
    ["refused", refusal],
    ["broken", events([...begun, CUT])],
  ])("counts a %s call of an agent as failed", async (_name, answer) => {
    const failed = async () => (await seriesOf("agentId", "talker"))?.["failed"] ?? 0;
    const before = await failed();
    agents.upstream.answerAll(answer);
    await agents.ask("talker", "hello");
    await expect.poll(failed, { timeout: 10_000 }).toBe(before + agents.upstream.requests.length);
  });

  it("has one number for each step in every list, also of steps without calls", async () => {
    const { body } = await read("step=minute&from=2030-01-01T00:00:30Z&to=2030-01-01T00:03:00Z", "owner");
    expect(body).toMatchObject({ currency: "EUR", timeZone: "UTC", series: [] });
    expect(body.steps).toEqual(["2030-01-01T00:00:00.000Z", "2030-01-01T00:01:00.000Z", "2030-01-01T00:02:00.000Z"]);
    const day = (await read("", "owner")).body;
    expect(day.steps.length).toBeGreaterThanOrEqual(24);
    const lists = Object.values(day.series[0]).filter(Array.isArray);
    expect(lists.length).toBeGreaterThan(8);
    for (const list of lists) expect(list).toHaveLength(day.steps.length);
  });

  it("shows only the calls with the wanted values, by any field", async () => {
    const whole = await seriesOf("agentId", "talker");
    const { body } = await read("by=userId&agentId=talker&model=echo-large&top=20", "owner");
    expect(
      body.series.map(({ value, calls }: any) => [value, calls.reduce((sum: number, each: number) => sum + each, 0)]),
    ).toEqual([["owner", whole!["calls"]]]);
    expect((await read("by=userId&agentId=talker&source=proxy", "owner")).body.series).toEqual([]);
  });

  it("is for the owner alone", async () => {
    const asked = [await read("", "member"), await read("", "service"), await read("")];
    expect(asked.map(({ status }) => status)).toEqual([403, 403, 401]);
  });

  it.each([
    "by=prompt",
    "by=model,provider",
    "step=week",
    "from=yesterday",
    "from=2030-02-30T00:00:00Z",
    "top=0",
    "top=21",
    "top=x",
    "source=agents",
    "prompt=x",
    `model=${"x".repeat(257)}`,
  ])("refuses %s", async (query) => {
    expect(await read(query, "owner")).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  });

  it("refuses a time with too many steps", async () => {
    const { status, body } = await read("step=minute&from=2020-01-01T00:00:00Z", "owner");
    expect([status, body.code]).toEqual([400, "too_many_steps"]);
  });
});

it("GET /api/counters is for every user of the instance", async () => {
  const asked = await Promise.all(
    (["owner", "member", undefined] as const).map((holder) => agents.service.call(holder, "GET", "/api/counters")),
  );
  expect(asked.map(({ status }) => status)).toEqual([200, 200, 401]);
  expect(asked[0]?.body).toMatchObject({ requests: 0, modelCalls: 0, uptimeSeconds: expect.any(Number) });
});
