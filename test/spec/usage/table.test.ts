import { createManualClock } from "@portico/adapters/clock/manual";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { recordUsage } from "@portico/adapters/usage/records";
import { createApp, ports, Secret } from "@portico/core";
import { measurements } from "@portico/operator/measurements";
import { usagePage } from "@portico/operator/usage";
import { testing } from "@portico/presets/testing";
import { describe, expect, it } from "vitest";

const prices = { currency: "EUR", models: [{ model: "dear", from: "2026-01-01", input: 10_000_000, output: 10_000_000 }] };
const HOUR_MS = 3_600_000;

type Call = Partial<ports.UsageSubject> & { readonly tokens?: number; readonly isFailed?: boolean };

/** A service whose calls began at these times, in the order of the times. */
async function start(timeZone: string, calls: Readonly<Record<string, readonly Call[]>>, now: string, hasPrices = true) {
  const [first = now] = Object.keys(calls);
  const clock = createManualClock({ startAt: first });
  const app = await createApp({
    name: "spending",
    extends: testing({
      clock,
      tokens: [
        { token: new Secret("owner-token"), userId: "owner", role: "owner" },
        { token: new Secret("member-token"), userId: "mia", role: "member" },
        { token: new Secret("service-token"), role: "service" },
      ],
    }),
    adapters: [recordUsage({ timeZone, ...(hasPrices && { prices }) })],
    plugins: [usagePage({}), measurements({ counted: createPrometheusMetrics() })],
  });
  const usage = app.port(ports.usage);
  const waitUntil = (at: string) => clock.advance(Date.parse(at) - clock.now());
  for (const [at, ofTime] of Object.entries(calls)) {
    await waitUntil(at);
    for (const { tokens, isFailed, ...subject } of ofTime) {
      const call = usage.note({ source: "agent", provider: "main", model: "dear", ...subject });
      if (isFailed) call.end({ isFailed });
      else if (tokens !== undefined) call.end({ inputTokens: tokens, outputTokens: 0 });
    }
  }
  await waitUntil(now);
  const get = async (path: string, token = "owner-token") => {
    const answer = await app.fetch(new Request(`http://spending${path}`, { headers: { "x-agent-service-token": token } }));
    return { status: answer.status, body: (await answer.json()) as any };
  };
  return {
    get,
    table: (query: string, token?: string) => get(`/api/usage/table?${query}`, token),
    [Symbol.asyncDispose]: () => app.close(),
  };
}

/** A Sunday noon in Berlin. */
const NOW = "2026-11-29T11:30:00Z";

describe("GET /api/usage/table", () => {
  it("has the most expensive value first, with its share of all costs, although another value has more calls", async () => {
    const cheap = { agentId: "chatty", model: "free", tokens: 1 };
    await using service = await start(
      "UTC",
      { "2026-11-29T10:00:00Z": [cheap, cheap, cheap, { agentId: "dear", tokens: 3 }, { agentId: "fair", tokens: 1 }] },
      NOW,
    );
    const { status, body } = await service.table("by=agentId&range=today");
    expect(status).toBe(200);
    expect(body).toMatchObject({ currency: "EUR", shareOf: "cost", timeZone: "UTC" });
    expect(body.rows.map(({ value, calls, cost, share, unpriced }: any) => [value, calls, cost, share, unpriced])).toEqual([
      ["dear", 1, 30, 0.75, 0],
      ["fair", 1, 10, 0.25, 0],
      ["chatty", 3, 0, 0, 3],
    ]);
    expect(body.total).toMatchObject({ calls: 5, cost: 40, unpriced: 3, inputTokens: 7 });
  });

  it("shares tokens where nothing costs anything, and calls where no usage is known, and counts unknown and failed calls", async () => {
    const calls = { "2026-11-29T10:00:00Z": [{ agentId: "a", tokens: 1 }, { agentId: "b", tokens: 3 }, { agentId: "b" }] };
    await using service = await start("UTC", calls, NOW, false);
    const { body } = await service.table("by=agentId&range=today");
    expect([body.shareOf, body.currency, body.rows[0]]).toEqual([
      "tokens",
      undefined,
      expect.objectContaining({ value: "b", share: 0.75, unknown: 1 }),
    ]);
    expect(body.rows[0]).not.toHaveProperty("cost");
    await using unknown = await start(
      "UTC",
      { "2026-11-29T10:00:00Z": [{ agentId: "a" }, { agentId: "a", isFailed: true }] },
      NOW,
    );
    const { body: counted } = await unknown.table("by=agentId&range=today");
    expect([counted.shareOf, counted.rows]).toEqual([
      "calls",
      [expect.objectContaining({ share: 1, calls: 2, failed: 1, unknown: 2 })],
    ]);
  });

  it.each([
    ["today", "2026-11-28T23:00:00.000Z", "2026-11-29T11:30:00.001Z", "2026-11-27T23:00:00.000Z", "2026-11-28T11:30:00.001Z"],
    ["yesterday", "2026-11-27T23:00:00.000Z", "2026-11-28T23:00:00.000Z", "2026-11-26T23:00:00.000Z", "2026-11-27T23:00:00.000Z"],
    [
      "last-7-days",
      "2026-11-22T23:00:00.000Z",
      "2026-11-29T11:30:00.001Z",
      "2026-11-15T23:00:00.000Z",
      "2026-11-22T11:30:00.001Z",
    ],
    ["last-week", "2026-11-15T23:00:00.000Z", "2026-11-22T23:00:00.000Z", "2026-11-08T23:00:00.000Z", "2026-11-15T23:00:00.000Z"],
    [
      "this-month",
      "2026-10-31T23:00:00.000Z",
      "2026-11-29T11:30:00.001Z",
      "2026-09-30T22:00:00.000Z",
      "2026-10-29T10:30:00.001Z",
    ],
    [
      "last-month",
      "2026-09-30T22:00:00.000Z",
      "2026-10-31T23:00:00.000Z",
      "2026-08-31T22:00:00.000Z",
      "2026-09-30T22:00:00.000Z",
    ],
    ["day", "2026-11-28T12:00:00.000Z", "2026-11-29T11:30:00.001Z", "2026-11-27T12:00:00.000Z", "2026-11-28T11:30:00.001Z"],
  ])("takes %s as whole days of the time zone, and compares it with as much of the time before", async (range, ...times) => {
    await using service = await start("Europe/Berlin", {}, NOW);
    const { body } = await service.table(`range=${range}`);
    expect([body.since, body.until, body.before.since, body.before.until]).toEqual(times);
  });

  it("takes an own range of days with its last day, and compares it with as many days before", async () => {
    await using service = await start("Europe/Berlin", {}, NOW);
    const { body } = await service.table("from=2026-10-24&to=2026-10-25");
    expect([body.since, body.until, body.before.since, body.before.until]).toEqual([
      "2026-10-23T22:00:00.000Z",
      "2026-10-25T23:00:00.000Z",
      "2026-10-21T22:00:00.000Z",
      "2026-10-23T22:00:00.000Z",
    ]);
  });

  it("has the figures of the time before in each row, also of values that are not used any more", async () => {
    await using service = await start(
      "UTC",
      {
        "2026-11-17T10:00:00Z": [
          { agentId: "gone", tokens: 5 },
          { agentId: "stays", tokens: 1 },
        ],
        "2026-11-24T10:00:00Z": [{ agentId: "stays", tokens: 2 }],
      },
      NOW,
    );
    const { body } = await service.table("by=agentId&from=2026-11-23&to=2026-11-29");
    expect(body.rows.map(({ value, cost, before }: any) => [value, cost, before.cost])).toEqual([
      ["stays", 20, 10],
      ["gone", 0, 50],
    ]);
    expect([body.total.cost, body.total.before.cost]).toEqual([20, 60]);
  });

  it("counts the last hour by minutes, so that earlier calls of its first hour are not part of it", async () => {
    const calls = {
      "2026-11-29T10:10:00Z": [{ agentId: "early", tokens: 1 }],
      "2026-11-29T10:40:00Z": [{ agentId: "late", tokens: 1 }],
      "2026-11-29T11:20:00Z": [{ agentId: "late", tokens: 1 }],
    };
    await using service = await start("UTC", calls, NOW);
    const { body } = await service.table("by=agentId&range=hour");
    expect(body.rows.map(({ value, calls: count, before }: any) => [value, count, before.calls])).toEqual([
      ["late", 2, 0],
      ["early", 0, 1],
    ]);
  });

  it("begins an own time with its hour, and has one row for all values beyond its bound", async () => {
    const calls = {
      "2026-11-29T09:10:00Z": [
        { userId: "u1", tokens: 3 },
        { userId: "u2", tokens: 2 },
        { userId: "u3", tokens: 1 },
      ],
    };
    await using service = await start("UTC", calls, NOW);
    const { body } = await service.table("by=userId&top=1&from=2026-11-29T09:40:00Z");
    expect(body.since).toBe("2026-11-29T09:00:00.000Z");
    expect(body.rows.map(({ value, isRest, cost, share }: any) => [value, isRest, cost, share])).toEqual([
      ["u1", false, 30, 0.5],
      [undefined, true, 30, 0.5],
    ]);
  });

  it("compares an own time with whole hours as well", async () => {
    const calls = { "2026-11-29T07:10:00Z": [{ tokens: 3 }], "2026-11-29T11:10:00Z": [{ tokens: 2 }] };
    await using service = await start("UTC", calls, NOW);
    const { body } = await service.table("from=2026-11-29T09:00:00Z&to=2026-11-29T11:20:00Z");
    expect([body.before.since, body.before.until]).toEqual(["2026-11-29T06:00:00.000Z", "2026-11-29T09:00:00.000Z"]);
    const { before } = (await service.table("from=2026-11-29T09:00:00Z")).body.total;
    expect(before.cost).toBe(30);
  });

  it.each(["from=2000-01-01&to=9999-12-31", "from=0000-01-01", "from=0050-01-01T00:00:00Z&to=9999-12-31T23:59:59Z"])(
    "takes the longest time, and begins the time before in 1970 at the earliest: %s",
    async (query) => {
      await using service = await start("Europe/Berlin", {}, NOW);
      const { status, body } = await service.table(query);
      expect([status, body.before?.since]).toEqual([200, "1970-01-01T00:00:00.000Z"]);
      expect(Date.parse(body.before.until)).toBeLessThanOrEqual(Date.parse(body.since));
    },
  );

  it("is for members with their own calls alone, and not for tokens without a user", async () => {
    const calls = {
      "2026-11-29T09:10:00Z": [
        { userId: "mia", tokens: 3 },
        { userId: "owner", tokens: 2 },
      ],
    };
    await using service = await start("UTC", calls, NOW);
    expect((await service.table("by=userId&range=today", "member-token")).body.total.cost).toBe(30);
    const refused = await service.table("range=today&userId=owner", "member-token");
    expect([refused.status, refused.body.code]).toEqual([403, "not_yours"]);
    expect((await service.table("range=today", "service-token")).body.code).toBe("user_required");
    expect((await service.table("range=today", "nothing")).status).toBe(401);
  });

  it.each([
    ["range=week", "invalid_request"],
    ["from=2026-02-30", "invalid_request"],
    ["from=yesterday", "invalid_request"],
    ["from=2026-11-01T10:00:00%2B05", "invalid_request"],
    ["from=0000-01-01&to=0001-01-01", "invalid_range"],
    ["by=model,provider", "invalid_request"],
    ["top=1001", "invalid_request"],
    ["range=today&from=2026-11-01", "invalid_range"],
    ["from=2026-11-02&to=2026-11-01", "invalid_range"],
    ["from=2027-01-01", "invalid_range"],
  ])("refuses %s", async (query, code) => {
    await using service = await start("UTC", {}, NOW);
    const { status, body } = await service.table(query);
    expect([status, body.code]).toEqual([400, code]);
  });
});

describe("GET /api/measurements", () => {
  it("gives the most expensive values series of their own where the query orders by cost", async () => {
    const cheap = { agentId: "chatty", model: "free", tokens: 1 };
    const calls = { "2026-11-29T10:00:00Z": [cheap, cheap, { agentId: "dear", tokens: 3 }] };
    await using service = await start("UTC", calls, NOW);
    const first = async (order: string) =>
      (await service.get(`/api/measurements?by=agentId&top=1&range=today&order=${order}`)).body.series.map(
        ({ value }: any) => value,
      );
    expect([await first("cost"), await first("calls")]).toEqual([
      ["dear", undefined],
      ["chatty", undefined],
    ]);
  });

  it("takes the same words and days as the table", async () => {
    await using service = await start("Europe/Berlin", {}, NOW);
    const steps = async (query: string) => (await service.get(`/api/measurements?${query}`)).body.steps;
    const week = await steps("range=last-week&step=day");
    expect([week.length, week[0]]).toEqual([7, "2026-11-15T23:00:00.000Z"]);
    expect(await steps("from=2026-11-01&to=2026-11-02&step=hour")).toHaveLength(48);
    expect((await service.get("/api/measurements/work?range=today&from=2026-11-01")).body.code).toBe("invalid_range");
    expect(Date.parse((await steps("range=day"))[0]) + 24 * HOUR_MS).toBe(Date.parse("2026-11-29T12:00:00Z"));
  });
});
