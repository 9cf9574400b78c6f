import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, PROTOCOLS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

const UNREGISTERED = [
  "/",
  "/v1",
  "/v1/",
  "/v1/responses",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/messages/",
  "/v1/models/",
  "/v1/models/echo-large",
  "/v1/chat/completions/",
  "/v1/chat",
  "/v1/messages/count_tokens",
  "/v1/messages/batches",
  "/v1/v1/messages",
  "//v1/messages",
  "/v1//messages",
  "/V1/messages",
  "/v1/Messages",
  "/v1/messages%2f",
  "/v1/messages;a=b",
  "/v1/messages/..%2fmodels",
  "/messages",
  "/chat/completions",
  "/healthz",
  "/readyz",
  "/metrics",
  "/api/safe-tokens",
  "/__proto__",
  "/v1/%",
  "/v1/%ff",
];

describe.each(["node", "fetch"] as const)("paths (4.1) on a %s host", (host) => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  let good: Readonly<Record<string, string>>;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    proxy = await startProxy({ host, providers: [{ protocol: "messages", upstream }] });
    good = { "x-api-key": await proxy.token() };
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });

  it.each(UNREGISTERED)("the unregistered path %s is 404, with and without a token, for GET and POST", async (path) => {
    const body = JSON.stringify(CALLERS.messages.request());
    for (const headers of [good, {}]) {
      for (const call of [
        { path, headers },
        { path, headers: { ...headers, "content-type": "application/json" }, body },
      ]) {
        const reply = await proxy.call(call);
        expect(reply.status).toBe(404);
        expect(await reply.json()).toMatchObject({ error: { message: expect.stringMatching(/./), type: "not_found_error" } });
      }
    }
    expect(upstream.requests).toHaveLength(0);
  });

  it("/v1/messages/count_tokens is a clean 404 in the Messages error shape, so that coding assistants fall back", async () => {
    const reply = await proxy.call({
      path: "/v1/messages/count_tokens?beta=true",
      headers: { ...good, "content-type": "application/json", "anthropic-beta": "token-counting-2024-11-01" },
      body: JSON.stringify(CALLERS.messages.request()),
    });
    expect(reply.status).toBe(404);
    expect(await reply.json()).toEqual({
      type: "error",
      error: { type: "not_found_error", message: expect.stringMatching(/./) },
    });
  });

  it("/v1/messages?beta=true works, and the query is forwarded unchanged", async () => {
    for (const query of ["?beta=true", "?a=1&a=2&%41=%20+", "?", "?x=/v1/models?y"]) {
      const reply = await proxy.post(`/v1/messages${query}`, CALLERS.messages.request());
      expect(reply.status, query).toBe(200);
    }
    expect(upstream.requests.map((request) => request.url).slice(0, 2)).toEqual([
      "/v1/messages?beta=true",
      "/v1/messages?a=1&a=2&%41=%20+",
    ]);
    expect(upstream.requests.every((request) => request.url.startsWith("/v1/messages"))).toBe(true);
  });

  it.each(PROTOCOLS)("the %s path takes a query of its own", async (protocol) => {
    const { path, request } = CALLERS[protocol];
    expect((await proxy.post(`${path}?trace=1`, request())).status).toBe(200);
  });

  it("HEAD /v1/models is answered as GET is, without a body", async () => {
    const reply = await proxy.call({ method: "HEAD", path: "/v1/models", headers: good });
    expect([reply.status, (await reply.bytes()).length]).toEqual([200, 0]);
  });
});
