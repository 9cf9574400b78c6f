import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type McpAccountServer, startMcpAccountServer } from "../../harness/mcp-account-server.ts";
import { type PorticoProcess, startPortico } from "../../harness/portico-process.ts";

vi.setConfig({ testTimeout: 60_000 });

const TOKENS = { owner: "owner-token-0123456789", second: "second-token-0123456789", ada: "ada-token-0123456789" };
type Holder = keyof typeof TOKENS;

let server: McpAccountServer;
let service: PorticoProcess;
beforeEach(async () => {
  server = await startMcpAccountServer();
  service = await startPortico({
    config: {
      agent: {
        tokens: [
          { token: TOKENS.owner, userId: "owner", role: "owner" },
          { token: TOKENS.second, userId: "second", role: "owner" },
          { token: TOKENS.ada, userId: "ada", role: "member" },
        ],
        allowedOrigins: ["https://desk.example"],
      },
      mcpServers: { shop: { url: server.url, auth: { type: "oauth" } }, plain: { url: server.url } },
    },
  });
});
afterEach(async () => {
  await service[Symbol.asyncDispose]();
  await server.close();
});

async function call(holder: Holder, method: string, path: string, body?: unknown) {
  const headers = { "x-agent-service-token": TOKENS[holder], "content-type": "application/json" };
  const answer = await fetch(`${service.url("agent")}/api/tool-accounts${path}`, {
    ...{ method, headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  for (const secret of server.authorization.secrets) expect(text).not.toContain(secret);
  return { status: answer.status, body: JSON.parse(text) };
}

const page = () => `${service.url("agent")}/console/accounts`;
const begin = (holder: Holder, redirectUrl = page()) => call(holder, "POST", "/shop/connect", { redirectUrl });
const returned = (url: string) => Object.fromEntries(new URL(server.authorization.agree(url)).searchParams);
const stateOf = async (holder: Holder) => (await call(holder, "GET", "")).body.accounts;

describe("the accounts of MCP servers, over HTTP", () => {
  it("are connected by the owner, shown to all callers without tokens, used, and disconnected", async () => {
    expect(await stateOf("ada")).toEqual([{ sourceId: "shop", per: "instance", state: "not_connected" }]);
    const { status, body } = await begin("owner");
    expect([status, Date.parse(body.expiresAt) > Date.now()]).toEqual([200, true]);
    const connected = {
      sourceId: "shop",
      per: "instance",
      state: "connected",
      connectedAt: expect.any(String),
      scope: "shop.read",
    };
    expect(await call("owner", "POST", "/shop/finish", returned(body.url))).toEqual({ status: 200, body: connected });
    expect(await stateOf("ada")).toEqual([connected]);
    await vi.waitFor(() => expect(server.headers.length).toBeGreaterThan(0), { timeout: 40_000, interval: 100 });
    expect(await call("owner", "DELETE", "/shop")).toEqual({ status: 200, body: { disconnected: true } });
    expect(await call("owner", "DELETE", "/shop")).toEqual({ status: 200, body: { disconnected: false } });
    expect(server.authorization.requests).toContain("/revoke");
  });

  it("are finished only by the person who began, and once", async () => {
    const received = returned((await begin("owner")).body.url);
    const invalid = { status: 400, body: expect.objectContaining({ code: "state_invalid" }) };
    expect(await call("second", "POST", "/shop/finish", received)).toEqual(invalid);
    expect(await call("owner", "POST", "/shop/finish", { ...received, state: "unknown" })).toEqual(invalid);
    expect((await call("owner", "POST", "/shop/finish", received)).status).toBe(200);
    expect(await call("owner", "POST", "/shop/finish", received)).toEqual(invalid);
  });

  it("return a person only to pages of the service and of allowed origins", async () => {
    const refused = { status: 400, body: expect.objectContaining({ code: "redirect_not_allowed" }) };
    for (const url of ["https://evil.example/", "javascript:alert(1)", "not an address", `${page()}#part`])
      expect(await begin("owner", url)).toEqual(refused);
    expect((await begin("owner", "https://desk.example/back")).status).toBe(200);
  });

  it("are refused for members, unknown servers and servers without auth, and tell when the person refuses", async () => {
    const code = async (answer: ReturnType<typeof call>) => (await answer).body.code;
    expect(await code(begin("ada"))).toBe("owner_required");
    expect(await code(call("ada", "DELETE", "/shop"))).toBe("owner_required");
    for (const id of ["plain", "unknown"]) expect(await code(call("owner", "DELETE", `/${id}`))).toBe("unknown_source");
    const { state } = returned((await begin("owner")).body.url);
    expect(await code(call("owner", "POST", "/shop/finish", { state, error: "access_denied" }))).toBe("authorization_refused");
  });

  it("tell when the service cannot be reached", async () => {
    await server.authorization.close();
    expect(await begin("owner")).toMatchObject({ status: 502, body: { code: "authorization_unreachable" } });
  });
});
