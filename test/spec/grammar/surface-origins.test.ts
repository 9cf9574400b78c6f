import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createApp, defineContract, definePlugin, reply } from "@portico/core";
import { toNodeHandler } from "@portico/core/node";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const contract = defineContract(
  { surface: "agent", auth: "key", envelope: (error) => ({ error: error.code }) },
  {
    hello: { method: "GET", path: "/hello", summary: "Hello", success: reply.json(v.object({ ok: v.boolean() })) },
    raw: { method: "POST", path: "/raw", summary: "Raw", success: reply.exchange(["text/plain"]) },
    link: { method: "POST", path: "/links/:token", summary: "Link", otherOrigins: "answered", success: reply.json(v.object({})) },
    elsewhere: { method: "GET", path: "/bytes", summary: "Foreign headers", success: reply.bytes() },
  },
);
const plugin = definePlugin({
  name: "origins",
  config: v.strictObject({}),
  needs: {},
  contract,
  guards: () => ({ key: () => undefined }),
  setup: () => ({
    hello: () => ({ ok: true }),
    link: () => ({}),
    raw: ({ exchange }) => void exchange.respond(200, { "content-type": "text/plain" }).end("raw"),
    // Its headers cannot be changed.
    elsewhere: () => Response.redirect("https://elsewhere.example/", 302),
  }),
})({});

const FRIEND = "https://desk.example";
const app = await createApp({ name: "origins", plugins: [plugin], surfaces: { agent: { allowedOrigins: [FRIEND] } } });
const server = createServer(toNodeHandler(app.surface("agent")));
let base: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.close();
  await app.close();
});

const hosts = {
  "a Node host": (path: string, init?: RequestInit) => fetch(`${base}${path}`, { redirect: "manual", ...init }),
  "a fetch host": async (path: string, init?: RequestInit) => app.fetch(new Request(`${base}${path}`, init)),
};

describe.each(Object.entries(hosts))("the origin rule of a surface (open points 4), on %s", (_host, call) => {
  it.each(["/hello", "/nowhere", "/bytes"])(
    "a foreign origin gets 403 origin_not_allowed, wherever it goes: %s",
    async (path) => {
      const answer = await call(path, { headers: { origin: "https://evil.example" } });
      expect(answer.status).toBe(403);
      expect(await answer.json()).toEqual({ error: "origin_not_allowed" });
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      expect(answer.headers.get("vary")).toBe("origin");
    },
  );

  it("a foreign origin does not reach a route that takes its streams itself", async () => {
    const answer = await call("/raw", { method: "POST", headers: { origin: "https://evil.example" } });
    expect([answer.status, await answer.json()]).toEqual([403, { error: "origin_not_allowed" }]);
  });

  it.each(["https://evil.example", "null"])(
    "a route whose path is the credential answers pages of %s, which cannot read the answer",
    async (origin) => {
      const answer = await call("/links/a-token", { method: "POST", headers: { origin } });
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, null]);
      for (const path of ["/links", "/links/", "/links/a/b"])
        expect([path, (await call(path, { method: "POST", headers: { origin } })).status]).toEqual([path, 403]);
    },
  );

  it("no origin and the service's own are not spoken to about origins", async () => {
    const plain = await call("/hello");
    const own = await call("/hello", { headers: { origin: base } });
    expect([plain.status, own.status]).toEqual([200, 200]);
    expect([plain, own].map(({ headers }) => headers.get("access-control-allow-origin"))).toEqual([null, null]);
    // A cache must not show the answer that names no allowed origin to a page of one.
    expect([plain, own].map(({ headers }) => headers.get("vary"))).toEqual([null, "origin"]);
  });

  it.each([
    ["/hello", "GET", 200],
    ["/nowhere", "GET", 404],
    ["/raw", "POST", 200],
    ["/bytes", "GET", 302],
  ])("an allowed origin may read the answer, whatever it is: %s", async (path, method, status) => {
    const answer = await call(path, { method, headers: { origin: FRIEND } });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("access-control-allow-origin")).toBe(FRIEND);
    expect(answer.headers.get("access-control-expose-headers")).toContain("x-portico-request-id");
    expect(answer.headers.get("vary")).toBe("origin");
    await answer.body?.cancel();
  });

  it("an allowed origin's preflight is answered without a credential", async () => {
    const asked = {
      origin: FRIEND,
      "access-control-request-method": "POST",
      "access-control-request-headers": "x-agent-service-token",
    };
    const answer = await call("/hello", { method: "OPTIONS", headers: asked });
    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-methods")).toContain("POST");
    expect(answer.headers.get("access-control-allow-headers")).toBe("x-agent-service-token");
    expect(answer.headers.get("vary")).toBe("origin");
  });

  it("the answer to a preflight without requested headers allows no headers", async () => {
    const answer = await call("/hello", {
      method: "OPTIONS",
      headers: { origin: FRIEND, "access-control-request-method": "GET" },
    });
    expect([answer.status, answer.headers.get("access-control-allow-headers")]).toEqual([204, null]);
  });

  it("an OPTIONS that is not a preflight, and a call that only looks like one, reach the routes", async () => {
    const plain = await call("/hello", { method: "OPTIONS", headers: { origin: FRIEND } });
    await plain.body?.cancel();
    expect(plain.status).not.toBe(204);
    const asked = await call("/hello", { headers: { origin: FRIEND, "access-control-request-method": "GET" } });
    expect([asked.status, await asked.json()]).toEqual([200, { ok: true }]);
  });
});

it("a surface of which no preset says anything does not look at origins", async () => {
  await using open = await createApp({ name: "open", plugins: [plugin] });
  const answer = await open.fetch(new Request("http://service/hello", { headers: { origin: "https://evil.example" } }));
  expect(answer.status).toBe(200);
});

it("origins that are known only later are asked for at every request that names one", async () => {
  const allowed: string[] = [];
  await using late = await createApp({
    name: "late",
    plugins: [plugin],
    surfaces: { agent: { allowedOrigins: () => allowed } },
  });
  const ask = async () => (await late.fetch(new Request("http://service/hello", { headers: { origin: FRIEND } }))).status;
  expect(await ask()).toBe(403);
  allowed.push(FRIEND);
  expect(await ask()).toBe(200);
});
