import { flattenPreset, type RouteContract } from "@portico/core";
import { local, readPlatformOptions } from "@portico/presets/local";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpCall } from "../../harness/http-call.ts";
import { type PorticoProcess, startPortico } from "../../harness/portico-process.ts";
import { rawCall, statusOf } from "../../harness/raw-call.ts";

/** Every declared route of the preset `local`, straight from the contracts. */
async function routesOf(surface: string) {
  const { plugins } = flattenPreset(local(await readPlatformOptions({ autoProviders: false }, { env: {} })));
  const routes = plugins.flatMap(({ spec }) => Object.values(spec.contract as Record<string, RouteContract>));
  return routes
    .filter((route) => route.surface === surface)
    .map(({ method, path }) => ({ method, path: path.replaceAll(/:\w+/g, "some-id") }));
}

const SURFACES = ["proxy", "workflow", "agent"];
const LOOPBACK = ["localhost", "LocalHost:1", "desk.localhost", "localhost.", "127.0.0.1", "127.8.8.8:80", "[::1]:49152"];
const STRANGERS = [
  ...["evil.example", "evil.example:49152", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "128.0.0.1"],
  ...["0.0.0.0", "192.168.1.9", "[::2]", "[::ffff:8.8.8.8]"],
];

/** What a caller with `Host` headers of its own sees of a path that everybody may look for. */
const statusFor = async (url: string, host: string) => (await httpCall(url, { path: "/no/such/path", headers: { host } })).status;

const UPGRADE =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";

let service: PorticoProcess;
const originOf = (surface: string) => new URL(service.url(surface)).origin;

describe("a local instance", () => {
  beforeAll(async () => {
    service = await startPortico({
      args: ["local"],
      config: {
        shutdownGraceMs: 100,
        proxy: { publicUrl: "https://models.example/v1" },
        agent: { publicUrl: "https://Agents.example:8443" },
      },
    });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  it.each(LOOPBACK)("every listener answers for this machine's own names, with any port: %s", async (host) => {
    for (const surface of SURFACES) expect([surface, await statusFor(originOf(surface), host)]).toEqual([surface, 404]);
  });

  it.each(STRANGERS)("no listener answers for another host: %s", async (host) => {
    for (const surface of SURFACES) expect([surface, await statusFor(originOf(surface), host)]).toEqual([surface, 421]);
  });

  it("the host of publicUrl is answered for, by its own listener alone", async () => {
    const asked = async (host: string) => Promise.all(SURFACES.map((surface) => statusFor(originOf(surface), host)));
    expect(await asked("models.example")).toEqual([404, 421, 421]);
    expect(await asked("agents.EXAMPLE:8443")).toEqual([421, 421, 404]);
    expect(await asked("agents.example")).toEqual([421, 421, 404]);
  });

  it.each(SURFACES)("every route of %s refuses another host before it looks at anything else", async (surface) => {
    const routes = await routesOf(surface);
    expect(routes).not.toEqual([]);
    const message = "This service does not answer for the host that the request names";
    for (const { method, path } of routes) {
      const answer = await httpCall(originOf(surface), { method, path, headers: { host: "evil.example" } });
      const body: unknown = await answer.json();
      expect([method, path, answer.status]).toEqual([method, path, 421]);
      expect(answer.headers).toMatchObject({ "x-content-type-options": "nosniff", "x-portico-request-id": expect.any(String) });
      if (surface !== "proxy") expect(body).toEqual({ error: message, code: "host_not_allowed" });
      else if (path === "/v1/chat/completions")
        expect(body).toEqual({ error: { message, type: "invalid_request_error", param: null, code: "host_not_allowed" } });
      else expect(body).toEqual({ type: "error", error: { type: "invalid_request_error", message } });
    }
  });

  it.each(SURFACES)("several Host headers are 400 at %s, also where each would be let in", async (surface) => {
    const send = async (...lines: string[]) =>
      statusOf(await rawCall(originOf(surface), `GET /nothing HTTP/1.1\r\n${lines.join("\r\n")}\r\nConnection: close\r\n\r\n`));
    expect(await send("Host: localhost", "Host: localhost")).toBe(400);
    expect(await send("Host: localhost", "hOsT: evil.example")).toBe(400);
    expect(await send("Host: localhost, localhost")).toBe(400);
    expect(await send("Host: some one@localhost")).toBe(400);
    expect(await send("Host:")).toBe(400);
    expect(await send()).toBe(400);
    expect(await send("Host: localhost")).toBe(404);
  });

  it("a target with a host of its own counts in place of the header (RFC 9112, 3.2.2)", async () => {
    const send = async (target: string, host: string) =>
      statusOf(await rawCall(originOf("agent"), `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`));
    expect(await send("http://evil.example/healthz", "localhost")).toBe(421);
    expect(await send("http://localhost/healthz", "localhost")).toBe(200);
  });

  it("a request of HTTP/1.0 without a Host is answered: browsers always name one", async () => {
    expect(await rawCall(originOf("agent"), "GET /healthz HTTP/1.0\r\n\r\n")).toContain('{"status":"alive"}');
  });

  it("the realtime channel refuses another host, on polling and on upgrades", async () => {
    const poll = await httpCall(originOf("agent"), {
      path: "/socket.io/?EIO=4&transport=polling",
      headers: { host: "evil.example" },
    });
    expect([poll.status, await poll.json()]).toMatchObject([421, { code: "host_not_allowed" }]);
    const upgrade = (host: string) =>
      rawCall(originOf("agent"), `GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: ${host}\r\n${UPGRADE}\r\n\r\n`);
    const refused = await upgrade("evil.example");
    expect(statusOf(refused)).toBe(421);
    expect(refused).toContain('{"error":"host_not_allowed"');
    expect(refused).toContain("x-content-type-options: nosniff");
    expect(statusOf(await upgrade("localhost\r\nHost: localhost"))).toBe(400);
  });

  it("an upgrade to a path that takes none is refused, too", async () => {
    const answer = await rawCall(
      originOf("proxy"),
      `GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n${UPGRADE}\r\nConnection: close\r\n\r\n`,
    );
    expect(statusOf(answer)).toBe(421);
  });

  it.each(SURFACES)(
    "JSON answers of every route of %s keep browsers from guessing what they are, with a token and without",
    async (surface) => {
      const { agentServiceToken, workflowServiceToken } = JSON.parse(service.read("credentials.json")) as Record<string, string>;
      const credentials: Record<string, string>[] = [
        { "x-agent-service-token": agentServiceToken!, "x-workflow-service-token": workflowServiceToken! },
        ...(surface === "proxy" ? [{ authorization: `Bearer ${await service.token("demo")}` }] : []),
        {},
      ];
      let seen = 0;
      for (const { method, path } of await routesOf(surface)) {
        for (const headers of credentials) {
          const body =
            method === "POST" && path.startsWith("/v1/")
              ? JSON.stringify({ model: "demo", max_tokens: 9, messages: [{ role: "user", content: "x" }] })
              : "{}";
          const typed = method === "GET" || method === "DELETE" ? {} : { body };
          const answer = await httpCall(originOf(surface), {
            method,
            path,
            headers: { ...headers, "content-type": "application/json" },
            ...typed,
          });
          if (!answer.headers["content-type"]?.startsWith("application/json")) {
            // A stream of events does not end by itself.
            answer.leave();
            continue;
          }
          await answer.text();
          seen++;
          expect([method, path, answer.status, answer.headers["x-content-type-options"]]).toEqual([
            method,
            path,
            answer.status,
            "nosniff",
          ]);
        }
      }
      expect(seen).toBeGreaterThan(0);
    },
  );

  it("a page at publicUrl is the service's own, also where a reverse proxy writes another Host", async () => {
    const ask = async (surface: string, path: string, origin: string) =>
      (await httpCall(originOf(surface), { path, headers: { origin } })).status;
    const polling = "/socket.io/?EIO=4&transport=polling";
    expect(await ask("agent", "/api/handshake", "https://agents.example:8443")).toBe(401);
    expect(await ask("agent", polling, "https://agents.example:8443")).toBe(200);
    // The console stands there, and calls the others.
    expect(await ask("workflow", "/api/workflows", "https://agents.example:8443")).toBe(401);
    for (const origin of ["https://agents.example", "https://models.example", "https://evil.example:8443"]) {
      expect([origin, await ask("agent", "/api/handshake", origin)]).toEqual([origin, 403]);
      expect([origin, await ask("agent", polling, origin)]).toEqual([origin, 403]);
      expect([origin, await ask("workflow", "/api/workflows", origin)]).toEqual([origin, 403]);
    }
  });

  it.each([
    "agents.example",
    "ftp://agents.example",
    "https://me@agents.example",
    "https://a.example/?b",
    "https://a.example/#b",
    "https://",
  ])("a publicUrl that is none stops the start: %s", async (publicUrl) => {
    for (const surface of SURFACES)
      await expect(readPlatformOptions({ [surface]: { publicUrl } }, { env: {} })).rejects.toThrow(
        `${surface}.publicUrl: expected`,
      );
  });

  it("JSON answers of the realtime channel, too", async () => {
    for (const query of ["EIO=4&transport=polling&sid=forged", "EIO=3&transport=polling"]) {
      const answer = await httpCall(originOf("agent"), { path: `/socket.io/?${query}` });
      expect([answer.status, answer.headers["x-content-type-options"]]).toEqual([400, "nosniff"]);
    }
  });
});

describe("a listener on every address", () => {
  beforeAll(async () => {
    service = await startPortico({
      args: ["workflow"],
      config: { shutdownGraceMs: 100, workflow: { listen: { host: "0.0.0.0" }, publicUrl: "http://flows.example" } },
    });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  it.each([...LOOPBACK, "0.0.0.0", "192.168.1.9:80", "[2001:db8::1]", "flows.example"])("answers for %s", async (host) => {
    expect(await statusFor(service.url("workflow"), host)).toBe(404);
  });

  it.each(["evil.example", "192.168.1.9.evil.example", "[v1.x]"])("does not answer for the name %s", async (host) => {
    expect([400, 421]).toContain(await statusFor(service.url("workflow"), host));
  });
});
