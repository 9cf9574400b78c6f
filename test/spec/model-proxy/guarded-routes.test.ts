import { randomIds } from "@portico/adapters/ids/random";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { systemClock } from "@portico/adapters/clock/system";
import { demo } from "@portico/adapters/models/demo";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type App, createApp, type RouteContract, Secret } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fetchCall } from "../../harness/fetch-call.ts";
import type { Call } from "../../harness/http-call.ts";

const OWNER = { "x-agent-service-token": "owner-token-0123456789" };
const MEMBER = { "x-agent-service-token": "member-token-0123456789" };
const SERVICE = { "x-agent-service-token": "service-token-0123456789" };

/** Every route of the area, straight from its contracts: what is added to them is tested without a word here. */
const ROUTES = [modelProxy({}), safeTokenManagement({})].flatMap(({ name, spec }) =>
  Object.entries(spec.contract as Record<string, RouteContract>).map(([key, contract]) => ({ key: `${name}.${key}`, contract })),
);

let app: App;
let good: Readonly<Record<string, Readonly<Record<string, string>>>>;

beforeAll(async () => {
  app = await createApp({
    name: "guarded",
    adapters: [
      demo({}),
      memoryRecords(),
      memorySecrets(),
      systemClock(),
      randomIds(),
      memoryTelemetry({}),
      tokenIdentity({
        tokens: [
          { token: new Secret(OWNER["x-agent-service-token"]), userId: "owner", role: "owner" },
          { token: new Secret(MEMBER["x-agent-service-token"]), userId: "member", role: "member" },
          { token: new Secret(SERVICE["x-agent-service-token"]), role: "service" },
        ],
      }),
    ],
    plugins: [modelProxy({}), safeTokenManagement({})],
  });
  const issued = await agent({ method: "POST", path: "/api/safe-tokens", headers: OWNER, body: '{"providerId":"demo"}' });
  const { token } = (await issued.json()) as { token: string };
  good = { proxy: { authorization: `Bearer ${token}` }, agent: OWNER };
});
afterAll(() => app.close());

const call = (surface: string, each: Call) => {
  const headers: Call["headers"] = { ...(each.body !== undefined && { "content-type": "application/json" }), ...each.headers };
  return fetchCall(app.surface(surface).fetch, `http://${surface}.test`, { ...each, headers });
};
const agent = (each: Call) => call("agent", each);

describe.each(ROUTES)("$key", ({ contract }) => {
  const { surface, method } = contract;
  const path = contract.path.replaceAll(/:\w+/g, "some-id");
  const body = method === "POST" ? { body: "{}" } : {};

  it("is guarded", () => {
    expect(contract.auth).not.toBe("open");
  });

  it("without a credential it is 401, in its own envelope", async () => {
    const wrong: Call["headers"][] = [
      {},
      { authorization: "Bearer nobody" },
      { "x-api-key": "nobody" },
      { "x-agent-service-token": "nobody" },
    ];
    for (const headers of wrong) {
      const reply = await call(surface, { method, path, ...(headers && { headers }), ...body });
      expect(reply.status).toBe(401);
      expect(await reply.json()).toHaveProperty("error");
    }
  });

  it("a credential of another surface is refused", async () => {
    const other = surface === "proxy" ? good.agent : good.proxy;
    expect((await call(surface, { method, path, headers: { ...other }, ...body })).status).toBe(401);
  });

  it("another method is 405 with Allow, and 401 comes first", async () => {
    expect((await call(surface, { method: "PATCH", path })).status).toBe(401);
    const reply = await call(surface, { method: "PATCH", path, headers: { ...good[surface] } });
    expect(reply.status).toBe(405);
    expect(reply.headers.allow?.split(", ")).toContain(method);
  });

  it("a path beside it is 404 in its surface's envelope", async () => {
    const reply = await call(surface, { method, path: `${path}/and/more`, headers: { ...good[surface] }, ...body });
    expect(reply.status).toBe(404);
    expect(await reply.json()).toHaveProperty("error");
  });
});

describe("safe tokens over the agent service (open points 2)", () => {
  const issue = async (body: object = { providerId: "demo" }, headers: Readonly<Record<string, string>> = OWNER) =>
    agent({ method: "POST", path: "/api/safe-tokens", headers, body: JSON.stringify(body) });
  const list = async () => (await agent({ path: "/api/safe-tokens", headers: OWNER })).text();
  const isGood = async (token: string) =>
    (await call("proxy", { path: "/v1/models", headers: { "x-api-key": token } })).status === 200;

  it("the owner issues one: 201 with a value that works and is never shown again", async () => {
    const reply = await issue({ providerId: "demo", label: "my editor" });
    expect(reply.status).toBe(201);
    const issued = (await reply.json()) as { token: string; tokenId: string };
    expect(issued).toMatchObject({
      providerId: "demo",
      label: "my editor",
      tokenId: expect.any(String),
      createdAt: expect.any(String),
    });
    expect(issued.token).toMatch(/^service_[A-Za-z0-9_-]{43,}$/);
    expect(await isGood(issued.token)).toBe(true);
    const listed = await list();
    expect(listed).toContain(issued.tokenId);
    expect(listed).not.toContain(issued.token);
    expect(listed).not.toContain(issued.token.slice("service_".length));
  });

  it.each([
    ["a member", MEMBER],
    ["a service", SERVICE],
  ])("%s may not: 403 on every call", async (_name, headers) => {
    for (const each of [
      { method: "GET", path: "/api/safe-tokens" },
      { method: "POST", path: "/api/safe-tokens", body: '{"providerId":"demo"}' },
      { method: "DELETE", path: "/api/safe-tokens/some-id" },
      { method: "DELETE", path: "/api/safe-tokens" },
    ]) {
      expect((await agent({ ...each, headers })).status, each.method).toBe(403);
    }
  });

  it.each([
    ["an unknown provider", { providerId: "nobody" }],
    ["no provider", {}],
    ["an empty provider", { providerId: "" }],
    ["an unknown field", { providerId: "demo", expires: 5 }],
    ["a label that is no text", { providerId: "demo", label: 5 }],
    ["a label without end", { providerId: "demo", label: "x".repeat(10_000) }],
  ])("%s is 400, and nothing is issued", async (_name, body) => {
    const before = await list();
    expect((await issue(body)).status).toBe(400);
    expect(await list()).toBe(before);
  });

  it("one is revoked at once, and a second time it is 404", async () => {
    const { token, tokenId } = (await (await issue()).json()) as { token: string; tokenId: string };
    const other = ((await (await issue()).json()) as { token: string }).token;
    const revoke = () => agent({ method: "DELETE", path: `/api/safe-tokens/${tokenId}`, headers: OWNER });
    expect((await revoke()).status).toBe(200);
    expect([await isGood(token), await isGood(other)]).toEqual([false, true]);
    expect((await revoke()).status).toBe(404);
  });

  it("all are revoked at once", async () => {
    const tokens = await Promise.all([1, 2, 3].map(async () => ((await (await issue()).json()) as { token: string }).token));
    expect((await agent({ method: "DELETE", path: "/api/safe-tokens", headers: OWNER })).status).toBe(200);
    expect(await Promise.all(tokens.map(isGood))).toEqual([false, false, false]);
    expect(JSON.parse(await list())).toEqual({ safeTokens: [] });
  });
});
