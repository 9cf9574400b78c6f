import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpTools } from "@portico/adapters/tools/mcp";
import { type ports, Secret } from "@portico/core";
import { chooseProviders } from "@portico/presets/platform/provider-choice";
import { type PlatformSettings, platformSchema } from "@portico/presets/settings/platform";
import { httpNode } from "@portico/workflow-nodes/http";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ForwardProxyOptions, startForwardProxy } from "../../harness/forward-proxy.ts";
import { startMcpHttpServer } from "../../harness/mcp-http-server.ts";
import { startMcpSseServer } from "../../harness/mcp-sse-server.ts";
import { hasTools } from "../../harness/oracle.ts";
import { hasOpenssl, makeCertificate } from "../../harness/own-certificate.ts";
import { PROVIDER_KEY } from "../../harness/proxy-app.ts";
import { startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { openNode } from "../../harness/run-node.ts";

const PASSWORD = "proxy-password-1234";
const BODY = Buffer.from('{"model":"echo-large","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}');

function outboundTo(port: number, more: object = {}, user = ""): PlatformSettings["outbound"] {
  const outbound = { proxy: `http://${user}127.0.0.1:${port}`, ...more };
  return (v.parse(platformSchema, { outbound }) as PlatformSettings).outbound;
}

/** Sends one call of a provider at a base URL, or with these settings, and returns the status of its answer. */
async function callProvider(outbound: PlatformSettings["outbound"], at: string | object, timeouts: object = {}): Promise<number> {
  const own = typeof at === "string" ? { protocol: "messages", baseUrl: at } : at;
  const provider = { id: "main", models: ["echo-large"], timeouts, ...own };
  const { providers } = v.parse(platformSchema, { providers: [provider] }) as PlatformSettings;
  const [chosen] = await chooseProviders({ providers, autoProviders: false, outbound }, { env: {} });
  const { port, close } = await openAdapter(chosen!.adapter, [systemClock()]);
  try {
    const signal = new AbortController().signal;
    const answer = await (port as ports.ModelProvider).send({ headers: {}, query: "", body: BODY }, signal);
    return answer.status;
  } finally {
    await close();
  }
}

/** A server with a certificate for `secure.test` that no authority signed, and a proxy that leads to it. */
async function startSecure(options: Omit<ForwardProxyOptions, "servers"> = {}) {
  const folder = temporaryFolder();
  const made = makeCertificate(folder.path, ["DNS:secure.test"]);
  const server = createServer({ cert: made.certificate, key: made.key }, (_request, response) => response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy = await startForwardProxy({ servers: { "secure.test:443": (server.address() as AddressInfo).port }, ...options });
  return {
    proxy,
    ca: made.certificate,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      folder.remove();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

describe("outbound.proxy: calls of providers", () => {
  it("pass through the proxy, which alone resolves the name of the server", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await startForwardProxy({ servers: { "vendor.test:80": Number(new URL(upstream.baseUrl).port) } });
    const path = new URL(upstream.baseUrl).pathname;
    expect(await callProvider(outboundTo(proxy.port), `http://vendor.test${path}`)).toBe(200);
    expect(proxy.passed).toEqual([`POST http://vendor.test${path}/messages`]);
  });

  it("go directly to loopback addresses, and to the hosts of noProxy", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await startForwardProxy({ servers: {} });
    expect(await callProvider(outboundTo(proxy.port), upstream.baseUrl)).toBe(200);
    const direct = callProvider(outboundTo(proxy.port, { noProxy: [".inside.invalid"] }), "http://vendor.inside.invalid/v1");
    await expect(direct, "the machine resolves the name itself").rejects.toThrow(/\((ENOTFOUND|EAI_AGAIN)\)$/);
    expect(proxy.passed).toEqual([]);
  });

  it("send the user and the password of the proxy's address to the proxy alone", async () => {
    await using upstream = await startFakeUpstream();
    const servers = { "vendor.test:80": Number(new URL(upstream.baseUrl).port) };
    await using proxy = await startForwardProxy({ servers, credentials: `user:${PASSWORD}` });
    const url = `http://vendor.test${new URL(upstream.baseUrl).pathname}`;
    expect(await callProvider(outboundTo(proxy.port, {}, `user:${PASSWORD}@`), url)).toBe(200);
    expect(JSON.stringify((await upstream.request()).headers)).not.toMatch(/proxy-|Basic/i);
    await expect(callProvider(outboundTo(proxy.port), url)).rejects.toThrow(/^Provider "main" .* \(PROXY_407\)$/);
  });

  it.each([
    ["refuses the server", {}, "https://other.test/v1", "PROXY_403"],
    ["asks for a password", { credentials: "a:b" }, "https://vendor.test/v1", "PROXY_407"],
    ["is silent", { isSilent: true }, "https://vendor.test/v1", "PROXY_TIMEOUT"],
  ])("fail with a code of the proxy if it %s", async (_what, options, baseUrl, code) => {
    await using proxy = await startForwardProxy({ servers: { "vendor.test:443": 9 }, ...options });
    const call = callProvider(outboundTo(proxy.port), baseUrl, { connectMs: 200 });
    await expect(call).rejects.toThrow(`Provider "main" could not be reached (${code})`);
  });

  it("fail with a code of the proxy if nothing listens at its address", async () => {
    const call = callProvider(outboundTo(9), "https://vendor.test/v1");
    await expect(call).rejects.toThrow('Provider "main" could not be reached (PROXY_ECONNREFUSED)');
  });
});

it("outbound.proxy: a provider of the protocol ai-sdk passes through the proxy, with the `fetch` that its package gets", async () => {
  await using upstream = await startFakeUpstream();
  const address = new URL(upstream.baseUrl);
  await using proxy = await startForwardProxy({ servers: { "vendor.test:80": Number(address.port) } });
  const sdk = { protocol: "ai-sdk", package: "@ai-sdk/anthropic", create: "createAnthropic", baseUrl: undefined };
  const options = { baseURL: `http://vendor.test${address.pathname}` };
  expect(await callProvider(outboundTo(proxy.port), { ...sdk, options, credential: PROVIDER_KEY })).toBe(200);
  expect(proxy.passed).toEqual([`POST http://vendor.test${address.pathname}/messages`]);
});

describe.runIf(hasOpenssl())("outbound.ca", () => {
  it("is trusted in addition, through a proxy and directly; without it the server is refused", async () => {
    await using at = await startSecure();
    expect(await callProvider(outboundTo(at.proxy.port, { ca: at.ca }), "https://secure.test/v1")).toBe(200);
    expect(at.proxy.passed).toEqual(["CONNECT secure.test:443"]);
    await expect(callProvider(outboundTo(at.proxy.port), "https://secure.test/v1")).rejects.toThrow("SELF_SIGNED");
    const folder = temporaryFolder();
    const made = makeCertificate(folder.path, ["IP:127.0.0.1"]);
    const server = createServer({ cert: made.certificate, key: made.key }, (_request, response) => response.end("{}"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const direct = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    expect(await callProvider({ noProxy: [], ca: new Secret(made.certificate) }, direct)).toBe(200);
    await expect(callProvider({ noProxy: [] }, direct)).rejects.toThrow("SELF_SIGNED");
    server.closeAllConnections();
    server.close();
    folder.remove();
  });

  it("and the proxy apply to http nodes, too", async () => {
    await using at = await startSecure();
    const outbound = outboundTo(at.proxy.port, { ca: at.ca });
    await using node = await openNode(httpNode({ outbound }));
    expect(await node.run({ url: "https://secure.test/a" })).toMatchObject({ status: 200 });
    expect(at.proxy.passed).toEqual(["CONNECT secure.test:443"]);
  });
});

describe("outbound.proxy: http nodes", () => {
  it("refuse private addresses, and names that lead to them on this machine", async () => {
    await using proxy = await startForwardProxy({ servers: { "10.0.0.1:80": 9, "inside.test:80": 9, "127.0.0.1:80": 9 } });
    const lookup = (_name: string, _options: object, callback: (error: null, found: object[]) => void) =>
      callback(null, [{ address: "10.0.0.1", family: 4 }]);
    await using node = await openNode(httpNode({ outbound: outboundTo(proxy.port), lookup: lookup as never }));
    for (const url of ["http://10.0.0.1/", "http://127.0.0.1/", "http://localhost/", "http://inside.test/"])
      await expect(node.run({ url }), url).rejects.toMatchObject({ code: "http_address_refused" });
    expect(proxy.passed).toEqual([]);
  });
});

const mcpServers: [string, boolean, () => Promise<{ readonly url: string; close(): Promise<void> }>, string][] = [
  ["Streamable HTTP", true, startMcpHttpServer, "POST"],
  ["HTTP with server-sent events", hasTools("test/oracles", "Tests of MCP servers of 2024-11-05"), startMcpSseServer, "GET"],
];

describe.each(mcpServers)("outbound.proxy: MCP servers over %s", (_name, isPossible, startServer, method) => {
  it.runIf(isPossible)("are called through the proxy", async () => {
    const server = await startServer();
    const url = new URL(server.url);
    await using proxy = await startForwardProxy({ servers: { "tools.test:80": Number(url.port) } });
    const options = { id: "tools", url: `http://tools.test${url.pathname}`, outbound: outboundTo(proxy.port) };
    const { port, close } = await openAdapter(mcpTools(options), [systemClock(), memoryTelemetry(undefined)]);
    try {
      const tools = await (port as ports.ToolSource).list(new AbortController().signal);
      expect(tools.length).toBeGreaterThan(0);
      expect(proxy.passed).toContain(`${method} http://tools.test${url.pathname}`);
    } finally {
      await close();
      await server.close();
    }
  });
});

describe("the settings of outbound", () => {
  it.each([
    ["outbound.proxy", { proxy: "socks5://127.0.0.1:1080" }],
    ["outbound.proxy", { proxy: "http://127.0.0.1:3128/path" }],
    ["outbound.noProxy.0", { noProxy: ["a,b"] }],
    ["outbound.ca", { ca: "no certificate" }],
    ["outbound.ca", { ca: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" }],
  ])("refuse %s of %j", (path, outbound) => {
    const { issues = [] } = v.safeParse(platformSchema, { outbound });
    expect(issues.map((issue) => v.getDotPath(issue))).toEqual([path]);
  });

  it("hold for a started service, which shows neither the proxy's password nor its address", async () => {
    await using upstream = await startFakeUpstream();
    const servers = { "vendor.test:80": Number(new URL(upstream.baseUrl).port) };
    await using proxy = await startForwardProxy({ servers, credentials: `user:${PASSWORD}` });
    const baseUrl = `http://vendor.test${new URL(upstream.baseUrl).pathname}`;
    await using service = await startPortico({
      config: {
        providers: [{ id: "main", protocol: "messages", baseUrl, models: ["echo-large"] }],
        outbound: { proxy: { env: "HTTPS_PROXY" } },
      },
      hasOwnProcess: true,
      env: { HTTPS_PROXY: `http://user:${PASSWORD}@127.0.0.1:${proxy.port}` },
    });
    const answer = await fetch(`${service.url("proxy")}/messages`, {
      method: "POST",
      headers: { "x-api-key": await service.token("main"), "content-type": "application/json" },
      body: BODY,
    });
    expect([answer.status, proxy.passed.length]).toEqual([200, 1]);
    const { stdout } = await service.run("config");
    expect(stdout).toContain("outbound");
    expect(stdout + service.stdout() + service.stderr()).not.toMatch(new RegExp(PASSWORD));
  });
});
