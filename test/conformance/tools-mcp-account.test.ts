import { readdirSync, readFileSync } from "node:fs";
import { request as send } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@portico/adapters/clock/system";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpAccountTools, type McpToolsOptions } from "@portico/adapters/tools/mcp";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { aesGcmSealing } from "@portico/adapters/sealing/aes-gcm";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { sqliteStore, type SqliteStoreOptions } from "@portico/adapters/stores/sqlite";
import { type Adapter, defineAdapter, ports, Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { type McpAccountServer, startMcpAccountServer } from "../harness/mcp-account-server.ts";
import { startForwardProxy } from "../harness/forward-proxy.ts";
import { hasOpenssl, makeCertificate } from "../harness/own-certificate.ts";
import { listen, serveRequests } from "../harness/mcp-http-server.ts";
import { openAdapter } from "./open-adapter.ts";

const undo: (() => unknown)[] = [];
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "portico-accounts-"));
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
  await rm(dir, { recursive: true, force: true });
});

const REDIRECT = "http://127.0.0.1:1/callback";
const signal = () => AbortSignal.timeout(20_000);

async function startServer(options: Parameters<typeof startMcpAccountServer>[0] = {}) {
  const server = await startMcpAccountServer(options);
  undo.push(() => server.close());
  return server;
}

/** One process with the tools of the server, as the source `shop`. All processes of a test share their store. */
async function openShop(
  { url }: Pick<McpAccountServer, "url">,
  {
    auth = {},
    clock = systemClock(),
    keys = {},
    outbound,
    store = sqliteStore({ dir, ...keys }),
  }: {
    auth?: object;
    clock?: Adapter;
    keys?: Partial<SqliteStoreOptions>;
    outbound?: McpToolsOptions["outbound"];
    store?: readonly Adapter[];
  } = {},
) {
  const telemetry = createMemoryTelemetry();
  const options = { id: "shop", url, auth: { type: "oauth" as const, per: "instance" as const, allow: [], ...auth }, outbound };
  const opened = await openAdapter(mcpAccountTools(options), [clock, memoryTelemetry({ telemetry }), ...store]);
  let isClosed = false;
  const close = async () => {
    if (!isClosed) await opened.close();
    isClosed = true;
  };
  undo.push(close);
  const source = opened.port as ports.ToolSource & { readonly authorization: ports.ToolAuthorization };
  return { source, telemetry, close, authorization: source.authorization };
}

/** The names of the endpoints in the metadata of an authorization server (RFC 8414), by the paths of the test's server. */
const ENDPOINTS: Readonly<Record<string, string>> = {
  authorize: "authorization_endpoint",
  token: "token_endpoint",
  register: "registration_endpoint",
  revoke: "revocation_endpoint",
};

/** A store that can be away. */
function failingStore() {
  const away = { isAway: false, refusedWrites: 0 };
  const memory = createMemoryRecords();
  undo.push(() => memory.close());
  const refuse = async () => {
    throw new ports.RecordsUnavailable("The store is away");
  };
  const failing = defineAdapter({
    name: "records/failing",
    port: ports.records,
    needs: {},
    open: (): ports.Records => ({
      collection<T extends object>(spec: ports.CollectionSpec): ports.Collection<T> {
        const collection = memory.records.collection<T>(spec);
        return {
          ...collection,
          write: collection.write,
          get: (id) => (away.isAway ? refuse() : collection.get(id)),
          put(...asked) {
            if (!away.isAway) return collection.put(...asked);
            away.refusedWrites++;
            return refuse();
          },
        };
      },
      batch: (writes) => (away.isAway ? refuse() : memory.records.batch(writes)),
    }),
  });
  return { away, store: [failing(undefined), aesGcmSealing({}), memorySecrets()] };
}

const greet = (source: ports.ToolSource) =>
  source.call({ toolId: "shop/greet", arguments: { name: "Ada" }, caller: {} }, signal());
const greeting = { content: [{ type: "text", text: "Hello Ada" }], isError: false };
const connectAgain = expect.objectContaining({ name: "ToolsNotConnected", message: expect.stringMatching(/^connect_again: /) });

/** What a person does: agrees in a browser, and comes back. */
async function connect({ authorization }: { readonly authorization: ports.ToolAuthorization }, server: McpAccountServer) {
  const begun = await authorization.begin({ redirectUrl: REDIRECT }, signal());
  return authorization.finish(returned(server, begun.url), signal());
}

function returned(server: McpAccountServer, url: string) {
  const back = new URL(server.authorization.agree(url)).searchParams;
  return { state: back.get("state")!, code: back.get("code")!, iss: back.get("iss")! };
}

describe("an MCP server that needs access to an account", () => {
  it("says `connect_again` until a person has connected it, and then runs its tools", async () => {
    const server = await startServer();
    const shop = await openShop(server);
    await expect(greet(shop.source)).rejects.toEqual(connectAgain);
    expect(shop.source.problems!()).toMatchObject([{ kind: "unavailable", message: expect.stringContaining("connect_again") }]);
    expect(await shop.authorization.status()).toEqual({ state: "not_connected" });
    const granted = { state: "connected", connectedAt: expect.any(Number), scope: "shop.read" };
    expect(await connect(shop, server)).toEqual(granted);
    expect(await greet(shop.source)).toEqual(greeting);
    expect(await shop.authorization.status()).toEqual(granted);
  });

  it("asks for the scopes of the settings, or else for those that the server names", async () => {
    const server = await startServer();
    const scopeOf = async (auth: object) => {
      const { authorization } = await openShop(server, { auth });
      const { url } = await authorization.begin({ redirectUrl: REDIRECT }, signal());
      return new URL(url).searchParams.get("scope");
    };
    expect(await scopeOf({})).toBe("shop.read");
    expect(await scopeOf({ scopes: ["a", "b"] })).toBe("a b");
  });

  it("registers one client for each address to come back to", async () => {
    const server = await startServer();
    const shop = await openShop(server);
    await connect(shop, server);
    await connect(shop, server);
    expect([...server.authorization.clients.values()]).toEqual([[REDIRECT]]);
  });

  it("keeps 100 registered clients, and registers the oldest ones again", async () => {
    const server = await startServer();
    const clock = createManualClock();
    const { authorization } = await openShop(server, { clock: manualClock({ clock }) });
    const begin = async (page: number) => {
      await clock.advance(1);
      await authorization.begin({ redirectUrl: `${REDIRECT}?page=${page}` }, signal());
      return server.authorization.clients.size;
    };
    for (let page = 1; page <= 101; page++) expect(await begin(page)).toBe(page);
    expect(await begin(2)).toBe(101);
    expect(await begin(1)).toBe(102);
  });

  it("connects with a client of the settings, and keeps the account while its secret is wrong there", async () => {
    const client = { id: "known", secret: "client-secret-0123456789", redirectUrl: REDIRECT };
    const server = await startServer({ client, metadata: { token_endpoint_auth_methods_supported: ["client_secret_basic"] } });
    const openWith = (secret: string) => openShop(server, { auth: { clientId: "known", clientSecret: new Secret(secret) } });
    const first = await openWith(client.secret);
    await connect(first, server);
    expect(await greet(first.source)).toEqual(greeting);
    await first.close();
    server.authorization.expireTokens();
    const second = await openWith("wrong");
    const error = await greet(second.source).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "ToolsUnavailable" });
    expect(await second.authorization.status()).toMatchObject({ state: "connected" });
    await second.close();
    const third = await openWith(client.secret);
    expect(await greet(third.source)).toEqual(greeting);
    const stored = readdirSync(dir).map((name) => readFileSync(join(dir, name), "latin1"));
    const seen = [JSON.stringify([...second.telemetry.lines, ...third.telemetry.lines]), String(error), ...stored].join("\n");
    expect(seen).not.toContain(client.secret);
  });

  it("seals the account and the client again after the instance key was changed", async () => {
    const server = await startServer();
    const [earlier, present] = [1, 2].map((byte) => new Secret(Buffer.alloc(32, byte).toString("base64url")));
    const first = await openShop(server, { keys: { sealingKey: earlier } });
    await connect(first, server);
    await first.close();
    const { port: records, close } = await openAdapter(sqliteRecords({ path: join(dir, "records.sqlite") }));
    undo.push(close);
    const sealed = async () => {
      const names = ["mcp-grants", "mcp-clients"];
      const found = await Promise.all(names.map((name) => records.collection<{ sealed: string }>({ name }).query({})));
      return found.flatMap(({ items }) => items.map(({ value }) => value.sealed));
    };
    const before = await sealed();
    const second = await openShop(server, { keys: { sealingKey: present, otherSealingKeys: [earlier!] } });
    await vi.waitFor(async () => expect((await sealed()).filter((each) => before.includes(each))).toEqual([]));
    expect(before).toHaveLength(2);
    await second.close();
    const third = await openShop(server, { keys: { sealingKey: present } });
    expect(await greet(third.source)).toEqual(greeting);
    await connect(third, server);
    expect(server.authorization.clients.size).toBe(1);
  });

  it("keeps the account over a restart", async () => {
    const server = await startServer();
    const first = await openShop(server);
    await connect(first, server);
    await first.close();
    expect(await greet((await openShop(server)).source)).toEqual(greeting);
  });

  it("has no token, code or word of the service in logs, errors and stored records in plain form", async () => {
    const server = await startServer();
    const shop = await openShop(server);
    await connect(shop, server);
    await greet(shop.source);
    server.authorization.revokeAll();
    const error = await greet(shop.source).catch((reason: unknown) => reason);
    const stored = readdirSync(dir).map((name) => readFileSync(join(dir, name), "latin1"));
    const seen = [JSON.stringify(shop.telemetry.lines), String(error), JSON.stringify(error), ...stored].join("\n");
    expect(server.authorization.secrets.length).toBeGreaterThan(2);
    for (const secret of [...server.authorization.secrets, "hidden-word"]) expect(seen).not.toContain(secret);
  });

  it("sends no token to another address that the settings name later", async () => {
    const [server, other] = [await startServer(), await startServer()];
    const first = await openShop(server);
    await connect(first, server);
    await first.close();
    const second = await openShop(other);
    await expect(greet(second.source)).rejects.toEqual(connectAgain);
    expect(await second.authorization.status()).toMatchObject({ state: "ended" });
  });
});

describe("the return of a person", () => {
  const stateInvalid = expect.objectContaining({ name: "ToolAuthorizationFailed", code: "state_invalid" });

  it("is accepted once, also by two processes at the same time", async () => {
    const server = await startServer();
    const shops = [await openShop(server), await openShop(server)];
    const received = returned(server, (await shops[0]!.authorization.begin({ redirectUrl: REDIRECT }, signal())).url);
    const ends = await Promise.allSettled(shops.map(({ authorization }) => authorization.finish(received, signal())));
    expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    await expect(shops[0]!.authorization.finish(received, signal())).rejects.toEqual(stateInvalid);
    expect(await greet(shops[1]!.source)).toEqual(greeting);
  });

  it("is refused with an unknown state, after 10 minutes, and with the issuer of another service", async () => {
    const server = await startServer();
    const clock = createManualClock();
    const { authorization } = await openShop(server, { clock: manualClock({ clock }) });
    const unknown = authorization.finish({ state: "unknown", code: "code" }, signal());
    await expect(unknown).rejects.toEqual(stateInvalid);
    const late = returned(server, (await authorization.begin({ redirectUrl: REDIRECT }, signal())).url);
    await clock.advance(10 * 60_000);
    await expect(authorization.finish(late, signal())).rejects.toEqual(stateInvalid);
    const mixed = returned(server, (await authorization.begin({ redirectUrl: REDIRECT }, signal())).url);
    const refused = expect.objectContaining({ code: "refused" });
    await expect(authorization.finish({ ...mixed, iss: "http://127.0.0.1:1" }, signal())).rejects.toEqual(refused);
  });

  it("leaves a server unconnected, and not half connected, if the process ends after the code's exchange", async () => {
    const server = await startServer();
    const first = await openShop(server);
    const received = returned(server, (await first.authorization.begin({ redirectUrl: REDIRECT }, signal())).url);
    server.authorization.beforeTokens = () => first.close();
    await expect(first.authorization.finish(received, signal())).rejects.toThrow();
    server.authorization.beforeTokens = undefined;
    const second = await openShop(server);
    expect(await second.authorization.status()).toEqual({ state: "not_connected" });
    await expect(second.authorization.finish(received, signal())).rejects.toEqual(stateInvalid);
    await connect(second, server);
    expect(await greet(second.source)).toEqual(greeting);
  });
});

describe("a token that the server does not accept any more", () => {
  const renewals = (server: McpAccountServer) =>
    server.authorization.requests.filter((request) => request === "/token refresh_token").length;

  it("is renewed once for two processes, which never spend one refresh token twice", async () => {
    const server = await startServer();
    const shops = [await openShop(server), await openShop(server)];
    await connect(shops[0]!, server);
    for (const { source } of shops) expect(await greet(source)).toEqual(greeting);
    server.authorization.expireTokens();
    const calls = shops.flatMap(({ source }) => [greet(source), greet(source), greet(source)]);
    expect(await Promise.all(calls)).toEqual(calls.map(() => greeting));
    expect(renewals(server)).toBe(1);
  });

  it("is renewed once for each request if the service repeats it, and the call fails", async () => {
    const server = await startServer();
    const shop = await openShop(server);
    await connect(shop, server);
    expect(await greet(shop.source)).toEqual(greeting);
    server.authorization.repeatsTokens = true;
    server.authorization.expireTokens();
    await expect(greet(shop.source)).rejects.toMatchObject({ name: "ToolsUnavailable" });
    expect(renewals(server)).toBeLessThan(5);
  });

  it("is used for its request, however short or long its lifetime is", async () => {
    for (const lifetime of [0.001, 1e306]) {
      const server = await startServer({ lifetime });
      const shop = await openShop(server);
      await connect(shop, server);
      expect(await greet(shop.source)).toEqual(greeting);
      await shop.authorization.disconnect(undefined, signal());
      await shop.close();
    }
  });

  it("is stored if its renewal ends while the process closes", async () => {
    const server = await startServer();
    const first = await openShop(server);
    await connect(first, server);
    expect(await greet(first.source)).toEqual(greeting);
    server.authorization.expireTokens();
    const closing = Promise.withResolvers<void>();
    server.authorization.beforeTokens = async () => {
      void (first.authorization as unknown as { close(): Promise<void> }).close().then(closing.resolve);
    };
    await expect(greet(first.source)).rejects.toThrow();
    await closing.promise;
    server.authorization.beforeTokens = undefined;
    expect(await greet((await openShop(server)).source)).toEqual(greeting);
  });

  it("is renewed once the store is back, if the store is away, and no refresh token is spent or lost", async () => {
    const server = await startServer();
    const { store, away } = failingStore();
    const shop = await openShop(server, { store });
    await connect(shop, server);
    expect(await greet(shop.source)).toEqual(greeting);
    server.authorization.expireTokens();
    // Before the renewal: nothing is spent, and the call fails once.
    away.isAway = true;
    await expect(greet(shop.source)).rejects.toMatchObject({ name: "ToolsUnavailable" });
    expect(renewals(server)).toBe(0);
    away.isAway = false;
    // After it: the new tokens are written as soon as that is possible.
    server.authorization.beforeTokens = async () => void (away.isAway = true);
    const called = greet(shop.source);
    await expect.poll(() => away.refusedWrites).toBeGreaterThan(1);
    away.isAway = false;
    server.authorization.beforeTokens = undefined;
    expect(await called).toEqual(greeting);
    expect(renewals(server)).toBe(1);
    server.authorization.expireTokens();
    expect(await greet(shop.source)).toEqual(greeting);
    expect(renewals(server)).toBe(2);
  });

  it("is renewed before it expires", async () => {
    const server = await startServer({ lifetime: 3600 });
    const clock = createManualClock();
    const shop = await openShop(server, { clock: manualClock({ clock }) });
    await connect(shop, server);
    expect(await greet(shop.source)).toEqual(greeting);
    expect(renewals(server)).toBe(0);
    await clock.advance(3_580_000);
    expect(await greet(shop.source)).toEqual(greeting);
    expect(renewals(server)).toBe(1);
  });

  it("gives `connect_again` if the grant was revoked, also to later calls and processes, and works after connecting again", async () => {
    const server = await startServer();
    const shop = await openShop(server);
    await connect(shop, server);
    expect(await greet(shop.source)).toEqual(greeting);
    server.authorization.revokeAll();
    await expect(greet(shop.source)).rejects.toEqual(connectAgain);
    await expect(greet(shop.source)).rejects.toEqual(connectAgain);
    expect(renewals(server)).toBe(1);
    expect(await shop.authorization.status()).toMatchObject({ state: "ended" });
    await expect(greet((await openShop(server)).source)).rejects.toEqual(connectAgain);
    await connect(shop, server);
    expect(await greet(shop.source)).toEqual(greeting);
  });

  it("is revoked and forgotten when a person disconnects", async () => {
    const server = await startServer();
    const shop = await openShop(server);
    await connect(shop, server);
    expect(await greet(shop.source)).toEqual(greeting);
    expect(await shop.authorization.disconnect(undefined, signal())).toBe(true);
    expect(server.authorization.requests).toContain("/revoke");
    await expect(greet(shop.source)).rejects.toEqual(connectAgain);
    expect(await shop.authorization.disconnect(undefined, signal())).toBe(false);
  });
});

describe("requests of OAuth, and those with the token", () => {
  it.runIf(hasOpenssl())("go through the proxy of the settings", async () => {
    const certificate = makeCertificate(dir, ["DNS:login.test"]);
    const metadata = Object.fromEntries(
      ["authorize", "token", "register", "revoke"].map((path) => [ENDPOINTS[path]!, `https://login.test/${path}`]),
    );
    const server = await startServer({
      metadata: { issuer: "https://login.test", ...metadata },
      resourceMetadata: { authorization_servers: ["https://login.test"] },
    });
    const login = new URL(server.authorization.issuer);
    const secure = createSecureServer({ cert: certificate.certificate, key: certificate.key }, (request, response) => {
      const { method, headers, url: path } = request;
      const onward = send({ host: login.hostname, port: login.port, method, path, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      request.pipe(onward);
    });
    const securePort = await listen(secure);
    undo.push(() => secure.close());
    const servers = { "tools.test:80": Number(new URL(server.url).port), "login.test:443": securePort };
    await using proxy = await startForwardProxy({ servers, credentials: "ada:secret" });
    const outbound = { proxy: new Secret(`http://ada:secret@127.0.0.1:${proxy.port}`), ca: new Secret(certificate.certificate) };
    const shop = await openShop({ url: "http://tools.test/mcp" }, { outbound, auth: { allow: ["login.test"] } });
    const begun = await shop.authorization.begin({ redirectUrl: REDIRECT }, signal());
    await shop.authorization.finish({ ...returned(server, begun.url), iss: "https://login.test" }, signal());
    expect(await greet(shop.source)).toEqual(greeting);
    server.authorization.expireTokens();
    expect(await greet(shop.source)).toEqual(greeting);
    expect(server.authorization.requests).toEqual(
      expect.arrayContaining(["/register", "/token authorization_code", "/token refresh_token"]),
    );
    expect(proxy.passed).toEqual(
      expect.arrayContaining([
        "GET http://tools.test/.well-known/oauth-protected-resource/mcp",
        "CONNECT login.test:443",
        "POST http://tools.test/mcp",
      ]),
    );
    await shop.close();
  });
});

describe("what a server says about OAuth", () => {
  const beginAt = async (options: Parameters<typeof startMcpAccountServer>[0], auth: object = {}) => {
    const { authorization } = await openShop(await startServer(options), { auth });
    return authorization.begin({ redirectUrl: REDIRECT }, signal()).then(
      () => "begun",
      ({ code }: { readonly code: string }) => code,
    );
  };

  it("leads to no address of a private network, unless the server is there or the settings allow it", async () => {
    const elsewhere = { authorization_servers: ["http://10.255.255.1"] };
    expect(await beginAt({ resourceMetadata: elsewhere })).toBe("address_refused");
    expect(await beginAt({ metadata: { registration_endpoint: "http://169.254.169.254/register" } })).toBe("address_refused");
    expect(await beginAt({ metadata: { registration_endpoint: "http://[::1]:1/register" } })).toBe("address_refused");
    const allowed = { metadata: { registration_endpoint: "http://[::1]:1/register" } };
    expect(await beginAt(allowed, { allow: ["[::1]"] })).toBe("unreachable");
  });

  it("may redirect metadata to allowed addresses, and never what holds a code", async () => {
    const redirected = async (to: string) => {
      const server = await startServer();
      server.authorization.redirect = (path) => (path.startsWith("/.well-known/") && path !== to ? to : undefined);
      const { authorization } = await openShop(server);
      return authorization.begin({ redirectUrl: REDIRECT }, signal()).then(
        () => "begun",
        ({ code }: { readonly code: string }) => code,
      );
    };
    expect(await redirected("/.well-known/oauth-authorization-server")).toBe("begun");
    expect(await redirected("http://169.254.169.254/metadata")).toBe("address_refused");
    expect(await redirected("http://[::1]:1/metadata")).toBe("address_refused");

    const server = await startServer();
    const bodies: string[] = [];
    const other = await serveRequests(async (request) => {
      bodies.push(await request.text());
      return Response.json({ access_token: "caught", token_type: "Bearer" });
    });
    undo.push(() => other.close());
    server.authorization.redirect = (path) => (path === "/token" ? other.url : undefined);
    await expect(connect(await openShop(server), server)).rejects.toMatchObject({ code: "refused" });
    expect(bodies).toEqual([]);
  });

  it("is refused for another resource, another issuer, and without PKCE", async () => {
    expect(await beginAt({ resourceMetadata: { resource: "https://other.example/mcp" } })).toBe("unreachable");
    expect(await beginAt({ metadata: { issuer: "https://other.example" } })).toBe("unreachable");
    expect(await beginAt({ metadata: { code_challenge_methods_supported: ["plain"] } })).toBe("unsupported");
    expect(await beginAt({ metadata: { code_challenge_methods_supported: undefined } })).toBe("unsupported");
  });

  it("needs a client of the settings if the service registers none", async () => {
    expect(await beginAt({ metadata: { registration_endpoint: undefined } })).toBe("unsupported");
    expect(await beginAt({ metadata: { registration_endpoint: undefined } }, { clientId: "known" })).toBe("begun");
  });
});
