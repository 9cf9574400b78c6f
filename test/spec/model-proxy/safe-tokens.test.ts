import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createManualClock, type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { randomIds } from "@portico/adapters/ids/random";
import { demo } from "@portico/adapters/models/demo";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createMemoryTelemetry, type MemoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type App, createApp, ports, Secret } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { type CredentialToolOptions, credentialTool } from "@portico/plugins/model-proxy/credential-tool";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { fetchCall } from "../../harness/fetch-call.ts";
import { holdTurnsOf } from "../../harness/held-turns.ts";
import type { Call, Reply } from "../../harness/http-call.ts";
import { memberTelemetry, openMembers } from "../../harness/members.ts";

interface Issued {
  readonly tokenId: string;
  readonly providerId: string;
  readonly label?: string;
  readonly createdAt: string;
  readonly lastUsedAt?: string;
  readonly token: string;
}

interface Service {
  readonly app: App;
  readonly clock: ManualClock;
  readonly telemetry: MemoryTelemetry;
  /** A call of the agent service; default: as the owner. */
  manage(call: Call & { readonly as?: string | null }): Promise<Reply>;
  issue(body?: object): Promise<Issued>;
  /** The status that the proxy answers with to a call with this token. */
  proxyStatus(token: string): Promise<number>;
  list(): Promise<readonly Omit<Issued, "token">[]>;
}

const OWNER = "owner-token-0123456789";
const HOLDERS: readonly TokenHolder[] = [
  { token: new Secret(OWNER), userId: "owner", role: "owner" },
  { token: new Secret("member-token-0123456789"), userId: "member", role: "member" },
  { token: new Secret("service-token-0123456789"), role: "service" },
];
const PATH = "/api/safe-tokens";
const REAL_KEY = "sk-real-key-0123456789";

const folder = mkdtempSync(join(tmpdir(), "portico-safe-tokens-"));
afterAll(() => rmSync(folder, { recursive: true }));
const opened: App[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

/** The proxy and the agent service in one app, over two providers. Its store: a file in `dataDir`, or memory. */
async function startService(dataDir?: string, tool: CredentialToolOptions = {}, providers = ["main", "other"]): Promise<Service> {
  const clock = createManualClock({ startAt: "2030-01-01T00:00:00.000Z" });
  const telemetry = createMemoryTelemetry();
  const { app, apps } = await openMembers({
    dataDir: dataDir ?? `safe-tokens-${randomUUID()}`,
    stores: () => [
      dataDir === undefined ? memoryRecords() : sqliteRecords({ path: join(dataDir, "records.db") }),
      memorySecrets(),
    ],
    engine: "none",
    open: (stores) =>
      createApp({
        name: "safe-tokens-under-test",
        adapters: [
          ...providers.map((id) => demo({ id })),
          ...stores,
          manualClock({ clock }),
          randomIds(),
          tokenIdentity({ tokens: HOLDERS }),
          memberTelemetry(telemetry),
          credentialTool(tool),
        ],
        plugins: [modelProxy({}), safeTokenManagement({})],
      }),
  });
  opened.push(app);
  let calls = 0;
  const next = () => apps[calls++ % apps.length]!;
  const manage: Service["manage"] = ({ as = OWNER, headers, ...call }) =>
    fetchCall(next().surface("agent").fetch, "http://agent.test", {
      ...call,
      headers: {
        ...(as !== null && { "x-agent-service-token": as }),
        ...(call.body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
    });
  return {
    app,
    clock,
    telemetry,
    manage,
    async issue(body = { providerId: "main" }) {
      const reply = await manage({ path: PATH, body: JSON.stringify(body) });
      expect(reply.status).toBe(201);
      return (await reply.json()) as Issued;
    },
    async proxyStatus(token) {
      const body = JSON.stringify({ model: "demo", max_tokens: 9, messages: [{ role: "user", content: "hello" }] });
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      return (await fetchCall(next().surface("proxy").fetch, "http://proxy.test", { path: "/v1/messages", headers, body }))
        .status;
    },
    async list() {
      return ((await (await manage({ path: PATH })).json()) as { safeTokens: Issued[] }).safeTokens;
    },
  };
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("managing safe tokens over the agent service (open points 2)", () => {
  let service: Service;
  beforeEach(async () => {
    service = await startService();
  });

  describe("POST /api/safe-tokens", () => {
    it("answers 201 with a new token, which the proxy takes from then on (2.1, 3.5)", async () => {
      const issued = await service.issue({ providerId: "other", label: "laptop" });
      expect(issued).toEqual({
        tokenId: expect.stringMatching(/^tok_[A-Za-z0-9]+$/),
        providerId: "other",
        label: "laptop",
        createdAt: "2030-01-01T00:00:00.000Z",
        token: expect.stringMatching(/^service_[A-Za-z0-9_-]{43,}$/),
      });
      expect(Buffer.from(issued.token.slice("service_".length), "base64url").length).toBeGreaterThanOrEqual(32);
      expect(await service.proxyStatus(issued.token)).toBe(200);
    });

    it("omits the label if the token has no label", async () => {
      expect(Object.keys(await service.issue()).sort()).toEqual(["createdAt", "providerId", "token", "tokenId"]);
    });

    it("issues two tokens for two equal calls, both good", async () => {
      const [first, second] = [await service.issue(), await service.issue()];
      expect(new Set([first.token, second.token]).size).toBe(2);
      expect(new Set([first.tokenId, second.tokenId]).size).toBe(2);
      for (const { token } of [first, second]) expect(await service.proxyStatus(token)).toBe(200);
    });

    it("refuses a provider that is not there with 400, and names those that are", async () => {
      for (const providerId of ["none", "MAIN", "__proto__", "main "]) {
        const reply = await service.manage({ path: PATH, body: JSON.stringify({ providerId }) });
        expect(reply.status).toBe(400);
        expect(await reply.json()).toMatchObject({ error: "unknown_provider", details: { providers: ["main", "other"] } });
      }
      expect(await service.list()).toEqual([]);
    });

    it.each([
      "{}",
      "null",
      "[]",
      '"main"',
      '{"providerId":""}',
      '{"providerId":5}',
      '{"providerId":["main"]}',
      '{"providerId":"main","label":5}',
      '{"providerId":"main","label":null}',
      `{"providerId":"main","label":"${"x".repeat(201)}"}`,
      '{"providerId":"main","token":"service_of-my-own-hidden-word"}',
      '{"providerId":"main","tokenId":"hidden-word"}',
      '{"providerId":"main"',
      "",
    ])("takes %j for no request: 400, nothing issued, nothing repeated", async (body) => {
      const reply = await service.manage({ path: PATH, body });
      expect(reply.status).toBe(400);
      const text = await reply.text();
      expect(JSON.parse(text)).toMatchObject({ error: expect.stringMatching(/^invalid_(request|json)$/) });
      expect(text).not.toContain("hidden-word");
      expect(await service.list()).toEqual([]);
    });

    it("takes a label of 200 characters", async () => {
      const label = "x".repeat(200);
      expect((await service.issue({ providerId: "main", label })).label).toBe(label);
    });

    it("wants JSON (415), and not more than it can need (413)", async () => {
      const body = '{"providerId":"main"}';
      expect((await service.manage({ path: PATH, body, headers: { "content-type": "text/plain" } })).status).toBe(415);
      expect((await service.manage({ path: PATH, body: `${body}${" ".repeat(1024 * 1024)}` })).status).toBe(413);
      expect(await service.list()).toEqual([]);
    });
  });

  describe("GET /api/safe-tokens", () => {
    it("lists every token without its value, the oldest first", async () => {
      const issued: Issued[] = [];
      for (const label of ["one", "two", "three"]) {
        issued.push(await service.issue({ providerId: "main", label }));
        await service.clock.advance(1000);
      }
      const reply = await service.manage({ path: PATH });
      expect(reply.status).toBe(200);
      const text = await reply.text();
      expect(JSON.parse(text)).toEqual({ safeTokens: issued.map(({ token: _token, ...known }) => known) });
      for (const { token } of issued) {
        expect(text).not.toContain(token);
        expect(text).not.toContain(token.slice("service_".length));
        expect(text).not.toContain(sha256(token));
      }
    });

    it("tells when each token was used last, at most five minutes late, and not before its first use", async () => {
      const [used, unused] = [await service.issue(), await service.issue()];
      const lastOf = async (tokenId: string) => (await service.list()).find((token) => token.tokenId === tokenId)?.lastUsedAt;
      expect(await lastOf(used.tokenId)).toBeUndefined();
      await service.proxyStatus(used.token);
      await expect.poll(() => lastOf(used.tokenId)).toBe("2030-01-01T00:00:00.000Z");
      // Calls soon after it write nothing in the process that has noted the token. On a cluster, all three processes note it.
      for (let call = 0; call < 3; call++) await service.proxyStatus(used.token);
      await service.clock.advance(299_000);
      for (let call = 0; call < 3; call++) await service.proxyStatus(used.token);
      expect(await lastOf(used.tokenId)).toBe("2030-01-01T00:00:00.000Z");
      await service.clock.advance(1000);
      for (let call = 0; call < 3; call++) await service.proxyStatus(used.token);
      await expect.poll(() => lastOf(used.tokenId)).toBe("2030-01-01T00:05:00.000Z");
      expect(await lastOf(unused.tokenId)).toBeUndefined();
    });

    it("forgets the last use of a revoked token", async () => {
      const uses = service.app.port(ports.records).collection({ name: "safe-token-uses", indexes: { byTime: ["at"] } });
      const stored = async () => (await uses.query()).items.length;
      for (const path of [undefined, PATH]) {
        const { token, tokenId } = await service.issue();
        await service.proxyStatus(token);
        await expect.poll(stored).toBe(1);
        expect((await service.manage({ method: "DELETE", path: path ?? `${PATH}/${tokenId}` })).status).toBe(200);
        expect(await stored()).toBe(0);
      }
    });

    it("is an empty list before there is one, and complete however many there are", async () => {
      expect(await service.list()).toEqual([]);
      const issued = await Promise.all(Array.from({ length: 1100 }, () => service.issue()));
      const ids = (await service.list()).map(({ tokenId }) => tokenId);
      expect(new Set(ids)).toEqual(new Set(issued.map(({ tokenId }) => tokenId)));
      expect(ids).toHaveLength(1100);
    });
  });

  describe("DELETE /api/safe-tokens/:tokenId", () => {
    const revoke = (tokenId: string) => service.manage({ method: "DELETE", path: `${PATH}/${tokenId}` });

    it("revokes one token: the proxy refuses it at once, and no other (3.5)", async () => {
      const [one, two] = [await service.issue(), await service.issue()];
      expect(await service.proxyStatus(one.token)).toBe(200);
      const reply = await revoke(one.tokenId);
      expect([reply.status, await reply.json()]).toEqual([200, { revoked: 1 }]);
      expect(await service.proxyStatus(one.token)).toBe(401);
      expect(await service.proxyStatus(two.token)).toBe(200);
      expect((await service.list()).map(({ tokenId }) => tokenId)).toEqual([two.tokenId]);
    });

    it("is refused by calls that share their look at it with earlier ones", async () => {
      const [one, two] = [await service.issue(), await service.issue()];
      using turn = holdTurnsOf("store-calls.ts");
      const early = service.proxyStatus(one.token);
      // It has arrived when the store is asked for the token, which waits for the end of the turn.
      await expect.poll(() => turn.count).toBe(1);
      await revoke(one.tokenId);
      const late = [one, two].map(({ token }) => service.proxyStatus(token));
      await expect.poll(() => turn.count).toBeGreaterThanOrEqual(2);
      turn.release();
      expect(await Promise.all([early, ...late])).toEqual([401, 401, 200]);
    });

    it("is 404 for a token that was revoked before", async () => {
      const { tokenId } = await service.issue();
      const statuses = await Promise.all([revoke(tokenId), revoke(tokenId), revoke(tokenId)]);
      expect(statuses.map(({ status }) => status).sort()).toEqual([200, 404, 404]);
      const reply = await revoke(tokenId);
      expect([reply.status, await reply.json()]).toEqual([404, expect.objectContaining({ error: "safe_token_not_found" })]);
    });

    it("404 for an invalid token id; no token is revoked", async () => {
      const { token } = await service.issue();
      for (const other of ["tok_none", "constructor", "%00", "%2e%2e", "a%2Fb", "*", token, sha256(token)]) {
        expect((await revoke(other)).status, other).toBe(404);
      }
      expect(await service.list()).toHaveLength(1);
    });
  });

  describe("DELETE /api/safe-tokens", () => {
    const revokeAll = () => service.manage({ method: "DELETE", path: PATH });

    it("revokes all tokens at once and says how many; a new one is good again (3.5)", async () => {
      const issued = [await service.issue(), await service.issue({ providerId: "other" }), await service.issue()];
      const reply = await revokeAll();
      expect([reply.status, await reply.json()]).toEqual([200, { revoked: 3 }]);
      for (const { token } of issued) expect(await service.proxyStatus(token)).toBe(401);
      expect(await service.list()).toEqual([]);
      expect(await (await revokeAll()).json()).toEqual({ revoked: 0 });
      expect(await service.proxyStatus((await service.issue()).token)).toBe(200);
    });

    it("does not make a revoked token good again by issuing another", async () => {
      const { token } = await service.issue({ providerId: "main", label: "same" });
      await revokeAll();
      await service.issue({ providerId: "main", label: "same" });
      expect(await service.proxyStatus(token)).toBe(401);
    });
  });

  describe("is the owner's alone", () => {
    const calls: readonly (Call & { readonly method: string })[] = [
      { method: "GET", path: PATH },
      { method: "POST", path: PATH, body: '{"providerId":"main"}' },
      { method: "DELETE", path: PATH },
      { method: "DELETE", path: `${PATH}/TOKEN_ID` },
    ];

    it.each(calls)("$method $path: 401 for a stranger, 403 for a member and a service, and nothing happens", async (call) => {
      const { tokenId, token } = await service.issue();
      const own = { ...call, path: call.path.replace("TOKEN_ID", tokenId) };
      const expected = [
        [null, 401, "unauthorized"],
        ["", 401, "unauthorized"],
        ["wrong", 401, "unauthorized"],
        [token, 401, "unauthorized"],
        ["member-token-0123456789", 403, "owner_required"],
        ["service-token-0123456789", 403, "owner_required"],
      ] as const;
      for (const [as, status, error] of expected) {
        const reply = await service.manage({ ...own, as });
        expect([as, reply.status]).toEqual([as, status]);
        expect(await reply.json()).toMatchObject({ error });
      }
      expect(await service.list()).toHaveLength(1);
      expect(await service.proxyStatus(token)).toBe(200);
    });

    it("takes the owner's token in its own header and nowhere else (5)", async () => {
      for (const [header, value] of [
        ["authorization", `Bearer ${OWNER}`],
        ["x-api-key", OWNER],
        ["cookie", `x-agent-service-token=${OWNER}`],
      ] as const) {
        expect((await service.manage({ path: PATH, as: null, headers: { [header]: value } })).status).toBe(401);
      }
      expect((await service.manage({ path: `${PATH}?x-agent-service-token=${OWNER}`, as: null })).status).toBe(401);
    });

    it("reveals nothing about a request's errors to callers without a valid token", async () => {
      expect((await service.manage({ path: PATH, body: "{", as: null })).status).toBe(401);
      expect((await service.manage({ path: PATH, body: "{}", as: null, headers: { "content-type": "text/plain" } })).status).toBe(
        401,
      );
      expect((await service.manage({ path: PATH, method: "PUT", as: null })).status).toBe(401);
    });

    it("is not on the proxy's address, and no instance token is a safe token (5, rule 1)", async () => {
      const at = { path: PATH, headers: { "x-agent-service-token": OWNER } };
      expect((await fetchCall(service.app.surface("proxy").fetch, "http://proxy.test", at)).status).toBe(404);
      expect(await service.proxyStatus(OWNER)).toBe(401);
    });
  });

  it("answers another method with 405 and what is allowed", async () => {
    const reply = await service.manage({ path: PATH, method: "PUT", body: "{}" });
    expect(reply.status).toBe(405);
    expect(reply.headers["allow"]?.split(", ").sort()).toEqual(["DELETE", "GET", "HEAD", "POST"]);
  });

  it("logs every call, and never a token", async () => {
    const { token, tokenId } = await service.issue();
    await service.proxyStatus(token);
    await service.manage({ path: PATH, as: token });
    await service.manage({ method: "DELETE", path: `${PATH}/${tokenId}` });
    await service.proxyStatus(token);
    const told = JSON.stringify([service.telemetry.lines, service.telemetry.requests]);
    expect(told).toContain("safe-tokens.issue");
    for (const secret of [token, token.slice("service_".length), sha256(token), OWNER]) expect(told).not.toContain(secret);
  });
});

describe("what is kept of a safe token (open points 2)", () => {
  let files = 0;
  const newDir = (): string => join(folder, `${++files}`);

  it("is its SHA-256, and the value is nowhere in the store", async () => {
    const dataDir = newDir();
    const service = await startService(dataDir);
    const { token } = await service.issue({ providerId: "main", label: "laptop" });
    await service.proxyStatus(token);
    // The file with its journal, while it is open and after it was closed: every byte that reaches the disk.
    for (const close of [false, true]) {
      if (close) await service.app.close();
      const bytes = Buffer.concat(readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name))));
      expect([bytes.includes("laptop"), bytes.includes(sha256(token))]).toEqual([true, true]);
      for (const secret of [token, token.slice("service_".length), Buffer.from(token.slice("service_".length), "base64url")]) {
        expect(bytes.includes(secret)).toBe(false);
      }
    }
  });

  it("survives a restart, as a revocation does (2.1)", async () => {
    const dataDir = newDir();
    const before = await startService(dataDir);
    const [kept, revoked] = [await before.issue({ providerId: "other", label: "kept" }), await before.issue()];
    await before.manage({ method: "DELETE", path: `${PATH}/${revoked.tokenId}` });
    const listed = await before.list();
    await before.app.close();

    const after = await startService(dataDir);
    expect(await after.list()).toEqual(listed);
    expect(await after.proxyStatus(kept.token)).toBe(200);
    expect(await after.proxyStatus(revoked.token)).toBe(401);
  });

  it("does not expire (2.1)", async () => {
    const service = await startService();
    const { token } = await service.issue();
    await service.clock.jump(20 * 365 * 24 * 3_600_000);
    expect(await service.proxyStatus(token)).toBe(200);
  });

  it("is seen at once by another process on the same store", async () => {
    const dataDir = newDir();
    const [one, two] = [await startService(dataDir), await startService(dataDir)];
    const { token, tokenId } = await one.issue();
    // Used on both before: neither remembers it beyond the call.
    expect([await one.proxyStatus(token), await two.proxyStatus(token)]).toEqual([200, 200]);
    await two.manage({ method: "DELETE", path: `${PATH}/${tokenId}` });
    expect(await one.proxyStatus(token)).toBe(401);
  });

  it("stays bound to its provider, also when that is not there any more", async () => {
    const dataDir = newDir();
    const before = await startService(dataDir);
    const { token, providerId } = await before.issue({ providerId: "other" });
    await before.app.close();
    const after = await startService(dataDir, {}, ["main"]);
    expect(await after.list()).toMatchObject([{ providerId }]);
    expect(await after.proxyStatus(token)).toBe(400);
  });
});

describe("the tool ComputeCredential (2.1, open points 2)", () => {
  const credentials = { main: new Secret(REAL_KEY) };
  let service: Service;
  let source: ports.ToolSource;
  const use = async (tool: CredentialToolOptions, providers?: string[]) => {
    service = await startService(undefined, tool, providers);
    source = service.app.port(ports.tools)[0] as ports.ToolSource;
  };
  const get = (more: object = {}, caller: ports.ToolCaller = {}) =>
    source.call({ toolId: "ComputeCredential", arguments: { action: "get", ...more }, caller }, new AbortController().signal);
  const told = (result: ports.ToolResult): Record<string, string> => {
    expect(result.isError).toBe(false);
    const [content] = result.content;
    return JSON.parse(content?.type === "text" ? content.text : "") as Record<string, string>;
  };
  const refusal = (result: ports.ToolResult): string => {
    expect(result.isError).toBe(true);
    return JSON.stringify(result.content);
  };

  it.each([{}, { allowRawCredentials: true, credentials }])(
    "is critical and never runs without a person's consent (%j)",
    async (tool) => {
      await use(tool);
      expect(await source.list()).toMatchObject([{ id: "ComputeCredential", riskLevel: "critical", requiresConfirmation: true }]);
    },
  );

  it("issues a token for the provider that is named, which the proxy takes and the owner can revoke", async () => {
    await use({ credentials });
    const { token, tokenId, provider, ...rest } = told(await get({ provider: "other" }, { agentId: "helper" }));
    expect([provider, rest]).toEqual(["other", {}]);
    expect(token).toMatch(/^service_[A-Za-z0-9_-]{43,}$/);
    expect(await service.proxyStatus(token ?? "")).toBe(200);
    expect(await service.list()).toMatchObject([{ tokenId, providerId: "other", label: "agent helper" }]);
    await service.manage({ method: "DELETE", path: `${PATH}/${tokenId}` });
    expect(await service.proxyStatus(token ?? "")).toBe(401);
  });

  it("issues two tokens for two calls", async () => {
    await use({});
    const [one, two] = [told(await get({ provider: "main" })), told(await get({ provider: "main", raw: false }))];
    expect(one["token"]).not.toBe(two["token"]);
    expect(await service.list()).toHaveLength(2);
  });

  it("uses the agent's provider, or the only provider, if the call names no provider", async () => {
    await use({});
    expect(told(await get({}, { providerId: "other" }))["provider"]).toBe("other");
    expect(told(await get({ provider: "main" }, { providerId: "other" }))["provider"]).toBe("main");
    await use({}, ["single"]);
    expect(told(await get())["provider"]).toBe("single");
  });

  it("asks which one where there are several, and where the named one is not there", async () => {
    await use({ allowRawCredentials: true, credentials });
    for (const result of [await get(), await get({ provider: "none" }), await get({ provider: "__proto__", raw: true })]) {
      expect(refusal(result)).toMatch(/main, other/);
    }
    expect(await service.list()).toEqual([]);
  });

  it.each([{}, { credentials }, { allowRawCredentials: false, credentials }])(
    "refuses the real key unless the configuration allows it, and issues nothing in its place (%j)",
    async (tool) => {
      await use(tool);
      expect(refusal(await get({ provider: "main", raw: true }))).not.toContain(REAL_KEY);
      expect(await service.list()).toEqual([]);
    },
  );

  it("hands out the real key where that is allowed and asked for, and not otherwise", async () => {
    await use({ allowRawCredentials: true, credentials });
    expect(told(await get({ provider: "main", raw: true }))).toEqual({ provider: "main", credential: REAL_KEY });
    expect(await service.list()).toEqual([]);
    expect(JSON.stringify(await get({ provider: "main" }))).not.toContain(REAL_KEY);
    expect(refusal(await get({ provider: "other", raw: true }))).toMatch(/no credential/);
  });
});
