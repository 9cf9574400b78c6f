import { describe, expect, it } from "vitest";
import { createManualClock } from "@portico/adapters/clock/manual";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, type ProxyOptions, startProxy } from "../../harness/proxy-app.ts";
import { hangUp, html, json, never } from "../../harness/upstream-answers.ts";

interface ModelList {
  readonly object: string;
  readonly data: readonly { readonly id: string; readonly object: string; readonly created: number; readonly owned_by: string }[];
}

async function list(proxy: ProxyApp, providerId?: string, path = "/v1/models"): Promise<ModelList> {
  const reply = await proxy.call({ path, headers: { "x-api-key": await proxy.token(providerId) } });
  expect(reply.status).toBe(200);
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  return (await reply.json()) as ModelList;
}

const rows = (models: ModelList) => models.data.map((entry) => `${entry.owned_by}/${entry.id}`);

describe.each(["node", "fetch"] as const)("GET /v1/models (2.2, 4.1) on a %s host", (host) => {
  const start = (options: Omit<ProxyOptions, "host">) => startProxy({ host, ...options });

  it("lists each model with exactly id, object, created and owned_by", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await start({ providers: [{ protocol: "messages", upstream, type: "vendor-a", models: ["m-1"] }] });
    const before = Math.floor(Date.now() / 1000);
    const models = await list(proxy);
    expect(models).toEqual({
      object: "list",
      data: [{ id: "m-1", object: "model", created: expect.any(Number), owned_by: "vendor-a" }],
    });
    const created = models.data[0]?.created ?? 0;
    expect(Number.isInteger(created)).toBe(true);
    expect(created).toBeGreaterThanOrEqual(before);
    expect(created).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
  });

  it("`created` is a Unix timestamp in seconds of the moment of listing", async () => {
    await using upstream = await startFakeUpstream();
    const clock = createManualClock({ startAt: "2030-01-01T00:00:00.900Z" });
    await using proxy = await start({ clock, providers: [{ protocol: "messages", upstream }] });
    expect((await list(proxy)).data.map((entry) => entry.created)).toEqual([1_893_456_000, 1_893_456_000]);
    await clock.advance(5_000);
    expect((await list(proxy)).data[0]?.created).toBe(1_893_456_005);
  });

  it("lists every provider for every token; owned_by is the provider's type and never its configuration id", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await start({
      providers: [
        { protocol: "messages", upstream, id: "first-id", type: "vendor-a", models: ["a-1", "a-2"] },
        { protocol: "chat-completions", upstream, id: "second-id", type: "vendor-b", models: ["b-1"] },
        { protocol: "demo" },
      ],
    });
    for (const providerId of ["first-id", "second-id", "demo"]) {
      const models = await list(proxy, providerId);
      expect(rows(models)).toEqual(["vendor-a/a-1", "vendor-a/a-2", "vendor-b/b-1", "demo/demo"]);
      expect(JSON.stringify(models)).not.toMatch(/-id/);
    }
    expect(upstream.requests, "configured names ask nobody").toHaveLength(0);
  });

  it("has no pagination: parameters change nothing", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await start({ providers: [{ protocol: "messages", upstream, models: ["m-1", "m-2", "m-3"] }] });
    expect((await list(proxy, "main", "/v1/models?limit=1&after_id=m-1")).data).toHaveLength(3);
  });

  it.each(["messages", "chat-completions"] as const)(
    '"discover" reads the list of a %s upstream with its credential',
    async (protocol) => {
      await using upstream = await startFakeUpstream({ models: ["found-1", "found-2"] });
      await using proxy = await start({ providers: [{ protocol, upstream, models: "discover", credential: "sk-for-the-list" }] });
      expect(rows(await list(proxy))).toEqual(["test-vendor/found-1", "test-vendor/found-2"]);
      const { headers, url } = await upstream.request();
      expect(url).toBe("/v1/models");
      expect(protocol === "messages" ? headers["x-api-key"] : headers.authorization).toContain("sk-for-the-list");
    },
  );

  it("a discovered model can be called, and one that was not discovered cannot", async () => {
    await using upstream = await startFakeUpstream({ models: ["found-1"] });
    await using proxy = await start({ providers: [{ protocol: "messages", upstream, models: "discover" }] });
    const call = (model: string) =>
      proxy.post("/v1/messages", { model, max_tokens: 9, messages: [{ role: "user", content: "x" }] });
    expect((await call("found-1")).status).toBe(200);
    expect((await call("found-2")).status).toBe(400);
  });

  it.each([
    ["closes the connection", hangUp()],
    ["answers with a page", html(502)],
    ["refuses its credential", json(401, { error: { message: "bad key" } })],
    ["answers with another shape", json(200, [1, 2, 3])],
  ])("a discover provider that %s does not break the list", async (_name, answer) => {
    await using upstream = await startFakeUpstream();
    await using good = await startFakeUpstream();
    upstream.answerAll(answer);
    await using proxy = await start({
      providers: [
        { protocol: "chat-completions", upstream, id: "broken", models: "discover" },
        { protocol: "messages", upstream: good, models: ["m-1"] },
      ],
    });
    expect(rows(await list(proxy))).toEqual(["test-vendor/m-1"]);
  });

  it("a discover provider that never answers does not hold the list for ever", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerAll(never());
    const clock = createManualClock();
    await using proxy = await start({
      clock,
      providers: [
        { protocol: "chat-completions", upstream, id: "silent", models: "discover" },
        { protocol: "messages", upstream, models: ["m-1"] },
      ],
    });
    const listing = list(proxy, "main");
    await upstream.request();
    await clock.jump(600_000);
    expect(rows(await listing)).toEqual(["test-vendor/m-1"]);
  });

  it("an empty address book is an empty list", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await start({ providers: [{ protocol: "messages", upstream, models: [] }] });
    expect(await list(proxy)).toEqual({ object: "list", data: [] });
  });
});
