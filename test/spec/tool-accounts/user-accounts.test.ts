import { readFileSync } from "node:fs";
import { join } from "node:path";
import { aesGcmSealing } from "@portico/adapters/sealing/aes-gcm";
import { mcpAccountTools } from "@portico/adapters/tools/mcp";
import { toolAccounts } from "@portico/operator/tool-accounts";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { answerEvents } from "../../harness/answer-events.ts";
import { startLoopedAgents } from "../../harness/looped-agents.ts";
import { type McpAccountServer, startMcpAccountServer } from "../../harness/mcp-account-server.ts";
import { type PorticoProcess, runCommand, startPortico } from "../../harness/portico-process.ts";
import { events } from "../../harness/upstream-answers.ts";

vi.setConfig({ testTimeout: 60_000 });

const PAGE = "https://desk.example/accounts";
let server: McpAccountServer;
let agreeing: string;
beforeEach(async () => {
  agreeing = "somewhere";
  server = await startMcpAccountServer({ userOf: () => agreeing });
});
afterEach(() => server.close());

const auth = { type: "oauth" as const, per: "user" as const, allow: [] };

it("a user gets the tools of an MCP server with their own account, and other users do not get them", async () => {
  const shop = mcpAccountTools({ id: "shop", url: server.url, auth });
  await using looped = await startLoopedAgents(
    { seller: { provider: "messages", model: "echo-large", tools: ["shop/greet"] } },
    { adapters: [shop, aesGcmSealing({})], plugins: [toolAccounts({ origins: () => ["https://desk.example"] })] },
  );
  const { service, upstream } = looped;
  const connect = async (holder: "owner" | "member") => {
    agreeing = holder;
    const { body } = await service.call(holder, "POST", "/api/tool-accounts/shop/connect", { redirectUrl: PAGE });
    const received = Object.fromEntries(new URL(server.authorization.agree(body.url)).searchParams);
    return { received, answer: () => service.call(holder, "POST", "/api/tool-accounts/shop/finish", received) };
  };
  const stateOf = async (holder: "owner" | "member") => {
    const { body } = await service.call(holder, "GET", "/api/tool-accounts");
    return body.accounts[0].state;
  };
  const ownerLogin = await connect("owner");
  // The address was given to another user.
  expect((await service.call("member", "POST", "/api/tool-accounts/shop/finish", ownerLogin.received)).status).toBe(400);
  expect((await ownerLogin.answer()).status).toBe(200);
  expect([await stateOf("owner"), await stateOf("member")]).toEqual(["connected", "not_connected"]);

  const member = await service.connect("member");
  const offered = async (client: typeof member) => {
    upstream.reset();
    const call = { id: "call_1", name: "shop_greet", input: { name: "Ada" } };
    upstream.answerNext(events(answerEvents("messages", { calls: [call] })));
    const { clientRequestId } = await client.start("go", {}, { agentId: "seller" });
    const { data } = await client.ended(clientRequestId);
    const { tools = [] } = await looped.sent(1);
    const { body } = await service.call(client.holder, "GET", `/api/runs/${data.runId}/receipt`);
    return { tools: tools.map(({ name }: any) => name), calls: body.receipts[0].tool_calls ?? [] };
  };
  const ofOwner = await offered(looped.client);
  expect(ofOwner).toMatchObject({ tools: ["shop_greet"], calls: [{ tool_id: "shop/greet", is_error: false }] });
  const ofMember = await offered(member);
  expect(ofMember.tools).toEqual([]);
  expect(ofMember.calls.filter(({ is_error }: any) => !is_error)).toEqual([]);
  expect(new Set(server.headers.map(({ authorization }) => server.authorization.userOf(authorization, server.url)))).toEqual(
    new Set(["owner"]),
  );
  await (await connect("member")).answer();
  expect((await offered(member)).tools).toEqual(["shop_greet"]);
  expect((await service.call("owner", "DELETE", "/api/tool-accounts/shop")).status).toBe(200);
  expect([await stateOf("owner"), await stateOf("member")]).toEqual(["not_connected", "connected"]);
});

it("turns that run at once renew an expired token of a user once, and their calls fail once the account is revoked", async () => {
  const shop = mcpAccountTools({ id: "shop", url: server.url, auth });
  await using looped = await startLoopedAgents(
    { seller: { provider: "messages", model: "echo-large", tools: ["shop/greet"] } },
    { adapters: [shop, aesGcmSealing({})], plugins: [toolAccounts({ origins: () => ["https://desk.example"] })] },
  );
  const { service, upstream } = looped;
  const { body } = await service.call("owner", "POST", "/api/tool-accounts/shop/connect", { redirectUrl: PAGE });
  const received = Object.fromEntries(new URL(server.authorization.agree(body.url)).searchParams);
  expect((await service.call("owner", "POST", "/api/tool-accounts/shop/finish", received)).status).toBe(200);
  upstream.answerAll(async (exchange) => {
    const isAnswered = (await exchange.request.bytes()).toString().includes("tool_result");
    const calls = [{ id: "call_1", name: "shop_greet", input: { name: "Ada" } }];
    await events(answerEvents("messages", isAnswered ? { text: "done" } : { calls }))(exchange);
  });
  const askAll = async () => {
    const turns = await Promise.all([1, 2, 3, 4, 5, 6].map(() => looped.ask("seller", "go")));
    return turns.map(({ receipt }) => (receipt.tool_calls ?? []).map(({ is_error }: any) => is_error));
  };
  const answered = Array.from({ length: 6 }, () => [false]);
  expect(await askAll()).toEqual(answered);
  server.authorization.expireTokens();
  // The processes that execute the other turns look for the token meanwhile.
  server.authorization.beforeTokens = () => new Promise((resolve) => setTimeout(resolve, 1000));
  expect(await askAll()).toEqual(answered);
  expect(server.authorization.requests.filter((request) => request === "/token refresh_token")).toHaveLength(1);
  server.authorization.revokeAll();
  const { receipt, messages } = await looped.ask("seller", "go");
  expect([receipt.outcome.status, (receipt.tool_calls ?? []).some(({ is_error }: any) => !is_error)]).toEqual(["success", false]);
  expect(JSON.stringify(messages)).not.toContain("Hello Ada");
  const { body: after } = await service.call("owner", "GET", "/api/tool-accounts");
  expect(after.accounts).toMatchObject([{ state: "ended" }]);
});

it("an account of a user is exported without its tokens, and erased with the user", async () => {
  const token = "ada-token-0123456789";
  await using service: PorticoProcess = await startPortico({
    config: {
      agent: { tokens: [{ token, userId: "ada", role: "member" }] },
      mcpServers: { shop: { url: server.url, auth: { type: "oauth", per: "user" } } },
    },
  });
  const call = async (method: string, path: string, body?: object) => {
    const headers = { "x-agent-service-token": token, "content-type": "application/json" };
    const url = `${service.url("agent")}/api/tool-accounts${path}`;
    return (await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })).json() as Promise<any>;
  };
  const { url } = await call("POST", "/shop/connect", { redirectUrl: service.url("agent") });
  await call("POST", "/shop/finish", Object.fromEntries(new URL(server.authorization.agree(url)).searchParams));
  expect((await call("GET", "")).accounts).toMatchObject([{ per: "user", state: "connected" }]);

  const portico = (line: string) => runCommand(line.split(" "), { cwd: service.cwd });
  expect((await portico("user export ada exported")).code).toBe(0);
  const exported = readFileSync(join(service.cwd, "exported", "tool-accounts.jsonl"), "utf8");
  expect(JSON.parse(exported)).toEqual({ server: "shop", connectedAt: expect.any(String), scope: "shop.read" });
  for (const secret of server.authorization.secrets) expect(exported).not.toContain(secret);
  const erased = await portico("user erase ada --yes --json");
  expect(JSON.parse(erased.stdout)).toMatchObject({ accounts: 1 });
  expect((await call("GET", "")).accounts).toMatchObject([{ state: "not_connected" }]);

  // A connection that is being finished while its user is erased.
  const begun = await call("POST", "/shop/connect", { redirectUrl: service.url("agent") });
  const received = Object.fromEntries(new URL(server.authorization.agree(begun.url)).searchParams);
  server.authorization.beforeTokens = async () => {
    expect((await portico("user erase ada --yes --json")).code).toBe(0);
  };
  expect(await call("POST", "/shop/finish", received)).toMatchObject({ code: "state_invalid" });
  server.authorization.beforeTokens = undefined;
  expect((await call("GET", "")).accounts).toMatchObject([{ state: "not_connected" }]);
  expect(server.authorization.requests).toContain("/revoke");
  expect(await call("POST", "/shop/finish", received)).toMatchObject({ code: "state_invalid" });
  const { code, stderr } = await portico("mcp login shop");
  expect([code, stderr]).toEqual([64, expect.stringContaining("Each user connects their own account")]);
});
