import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Call, Reply } from "../../harness/http-call.ts";
import { PROVIDER_KEY, type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

type Headers = NonNullable<Call["headers"]>;

const ENDPOINTS = [
  { name: "GET /v1/models", path: "/v1/models", body: undefined },
  { name: "POST /v1/messages", path: "/v1/messages", body: JSON.stringify(CALLERS.messages.request()) },
  {
    name: "POST /v1/chat/completions",
    path: "/v1/chat/completions",
    body: JSON.stringify(CALLERS["chat-completions"].request()),
  },
] as const;

describe.each(["node", "fetch"] as const)("safe tokens (2.1, 5, 7.1) on a %s host", (host) => {
  let upstream: FakeUpstream;
  let other: FakeUpstream;
  let proxy: ProxyApp;
  let token: string;

  beforeAll(async () => {
    [upstream, other] = await Promise.all([startFakeUpstream(), startFakeUpstream()]);
    proxy = await startProxy({
      host,
      providers: [
        { protocol: "messages", upstream },
        { protocol: "messages", upstream: other, id: "other", credential: "sk-other-0123456789", models: ["other-model"] },
      ],
    });
    token = await proxy.token();
  });
  beforeEach(() => {
    upstream.reset();
    other.reset();
  });
  afterAll(async () => {
    await proxy.close();
    await Promise.all([upstream.close(), other.close()]);
  });

  const ask = (endpoint: { readonly path: string; readonly body: string | undefined }, headers: Headers): Promise<Reply> =>
    proxy.call({
      path: endpoint.path,
      headers: { ...(endpoint.body !== undefined && { "content-type": "application/json" }), ...headers },
      ...(endpoint.body !== undefined && { body: endpoint.body }),
    });
  const messages = ENDPOINTS[1];

  it("begins with `service_` and holds 256 random bits in base64url; two are never the same", async () => {
    const tokens = await Promise.all([proxy.token(), proxy.token()]);
    for (const each of tokens) expect(each).toMatch(/^service_[A-Za-z0-9_-]{43,}$/);
    expect(new Set(tokens).size).toBe(2);
  });

  describe.each(ENDPOINTS)("$name", (endpoint) => {
    it("lets a safe token in as Authorization: Bearer", async () => {
      expect((await ask(endpoint, { authorization: `Bearer ${token}` })).status).toBe(200);
    });

    it("takes the scheme's name in any case", async () => {
      for (const scheme of ["bearer", "BEARER", "bEaReR"]) {
        expect((await ask(endpoint, { authorization: `${scheme} ${token}` })).status, scheme).toBe(200);
      }
    });

    it("lets a safe token in as x-api-key", async () => {
      expect((await ask(endpoint, { "x-api-key": token })).status).toBe(200);
    });

    it("a nonempty x-api-key wins when both are sent", async () => {
      expect((await ask(endpoint, { "x-api-key": token, authorization: "Bearer service_wrong" })).status).toBe(200);
      expect((await ask(endpoint, { "x-api-key": "service_wrong", authorization: `Bearer ${token}` })).status).toBe(401);
    });

    it("an empty x-api-key does not win", async () => {
      expect((await ask(endpoint, { "x-api-key": "", authorization: `Bearer ${token}` })).status).toBe(200);
      expect((await ask(endpoint, { "x-api-key": "" })).status).toBe(401);
    });

    it.each<[string, (token: string) => Headers]>([
      ["no credential", () => ({})],
      ["an unknown token", () => ({ authorization: `Bearer service_${"A".repeat(43)}` })],
      ["a token without its prefix", (good) => ({ authorization: `Bearer ${good.replace("service_", "")}` })],
      ["a token with its prefix in capitals", (good) => ({ authorization: `Bearer ${good.replace("service_", "SERVICE_")}` })],
      ["a token cut by one character", (good) => ({ authorization: `Bearer ${good.slice(0, -1)}` })],
      ["a token with one character more", (good) => ({ "x-api-key": `${good}A` })],
      ["a token in another scheme", (good) => ({ authorization: `Basic ${good}` })],
      ["a token without a scheme", (good) => ({ authorization: good })],
      ["two tokens in one header", (good) => ({ authorization: `Bearer ${good} ${good}` })],
      ["the real provider key", () => ({ authorization: `Bearer ${PROVIDER_KEY}` })],
      ["the real provider key as x-api-key", () => ({ "x-api-key": PROVIDER_KEY })],
      ["an instance token", () => ({ "x-agent-service-token": "instance-token" })],
      ["a safe token in the instance token's header", (good) => ({ "x-agent-service-token": good })],
      ["a safe token in a cookie", (good) => ({ cookie: `authorization=Bearer ${good}; x-api-key=${good}` })],
      ["a very long token", () => ({ "x-api-key": `service_${"A".repeat(8_000)}` })],
      ["a token with a name of the prototype", () => ({ "x-api-key": "__proto__" })],
    ])("refuses %s with 401 in exactly the Messages shape", async (_name, headers) => {
      const reply = await ask(endpoint, headers(token));
      expect(reply.status).toBe(401);
      expect(await reply.json()).toEqual({
        type: "error",
        error: { type: "authentication_error", message: expect.stringMatching(/./) },
      });
      expect(upstream.requests).toHaveLength(0);
    });

    it("refuses a token in the URL", async () => {
      const path = `${endpoint.path}?x-api-key=${token}&access_token=${token}`;
      expect((await ask({ ...endpoint, path }, {})).status).toBe(401);
    });
  });

  it("revoking a token ends that token at once, and no other", async () => {
    const [first, second] = await Promise.all([proxy.issue(), proxy.issue()]);
    expect((await ask(messages, { "x-api-key": first.value })).status).toBe(200);
    await proxy.revoke(first.id);
    for (const endpoint of ENDPOINTS) {
      const reply = await ask(endpoint, { "x-api-key": first.value });
      expect(reply.status, endpoint.name).toBe(401);
      expect(await reply.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    }
    expect((await ask(messages, { "x-api-key": second.value })).status).toBe(200);
  });

  it("all tokens can be revoked at once", async () => {
    await using own = await startProxy({ host, providers: [{ protocol: "messages", upstream }] });
    const tokens = await Promise.all([own.token(), own.token(), own.token()]);
    await own.revokeAll();
    for (const each of tokens) {
      expect((await own.call({ path: "/v1/models", headers: { "x-api-key": each } })).status).toBe(401);
    }
    expect((await own.call({ path: "/v1/models", headers: { "x-api-key": await own.token() } })).status).toBe(200);
  });

  it("a token is bound to one provider: a model of another fails and never falls back", async () => {
    const foreign = await proxy.token("other");
    expect((await ask(messages, { "x-api-key": foreign })).status).toBe(400);
    const own = JSON.stringify(CALLERS.messages.request("hello", { model: "other-model" }));
    expect((await ask({ ...messages, body: own }, { "x-api-key": foreign })).status).toBe(200);
    expect([upstream.requests.length, other.requests.length]).toEqual([0, 1]);
  });

  it.each(["x-service-provider-id", "x-provider-id", "x-portico-provider"])(
    "a header %s cannot override the binding",
    async (header) => {
      for (const value of ["other", "main,other", "", "../other", "__proto__"]) {
        const reply = await ask(messages, { "x-api-key": token, [header]: value });
        expect(reply.status, value).toBe(200);
      }
      const foreignModel = JSON.stringify(CALLERS.messages.request("hello", { model: "other-model" }));
      expect((await ask({ ...messages, body: foreignModel }, { "x-api-key": token, [header]: "other" })).status).toBe(400);
      expect([upstream.requests.length, other.requests.length]).toEqual([5, 0]);
    },
  );
});
