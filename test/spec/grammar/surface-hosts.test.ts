import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createApp, defineContract, definePlugin, reply } from "@portico/core";
import { toNodeHandler } from "@portico/core/node";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpCall } from "../../harness/http-call.ts";
import { rawCall } from "../../harness/raw-call.ts";

const plugin = definePlugin({
  name: "hosts",
  config: v.strictObject({}),
  needs: {},
  contract: defineContract(
    { surface: "desk", auth: "open", envelope: (error) => ({ error: error.code }) },
    {
      hello: { method: "GET", path: "/hello", summary: "Hello", success: reply.json(v.object({ ok: v.boolean() })) },
      stream: { method: "GET", path: "/raw", summary: "Raw", success: reply.exchange(["text/plain"]) },
    },
  ),
  setup: () => ({
    hello: () => ({ ok: true }),
    stream: ({ exchange }) => void exchange.respond(200, { "content-type": "text/plain" }).end("raw"),
  }),
})({});

const app = await createApp({ name: "hosts", plugins: [plugin] });
const bound = app.surface("desk").forHosts(["desk.example", "::1", "10.0.0.1"]);
const server = createServer(toNodeHandler(bound));
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
  "a Node host": async (path: string, host: string) => {
    const answer = await httpCall(base, { path, headers: { host } });
    return { status: answer.status, text: await answer.text() };
  },
  "a fetch host": async (path: string, host: string) => {
    const answer = await bound.fetch(new Request(`${base}${path}`, { headers: { host } }));
    return { status: answer.status, text: await answer.text() };
  },
  "a fetch host that keeps headers to itself": async (path: string, host: string) => {
    const answer = await bound.fetch(new Request(`http://${host}${path}`));
    return { status: answer.status, text: await answer.text() };
  },
};

describe.each(Object.entries(hosts))("a surface for certain hosts, on %s", (_host, call) => {
  it.each(["/hello", "/raw", "/nowhere"])("refuses all others, wherever they go: %s", async (path) => {
    for (const host of ["evil.example", "desk.example.evil.example", "10.0.0.2", "0.0.0.0"])
      expect([host, await call(path, host)]).toEqual([host, { status: 421, text: '{"error":"host_not_allowed"}' }]);
  });

  it.each(["localhost.evil.example", "127.0.0.1.evil.example", "[::2]", "128.0.0.1", "deskxexample"])(
    "refuses %s, which only looks like one of them",
    async (host) => {
      expect((await call("/hello", host)).status).toBe(421);
    },
  );

  it.each([
    ...["desk.example", "DESK.example:81", "desk.example.", "[::1]", "10.0.0.1:80"],
    ...["localhost", "app.localhost:8080", "127.0.0.1", "127.9.8.7:1"],
  ])("answers for %s", async (host) => {
    expect((await call("/hello", host)).status).toBe(200);
    expect((await call("/raw", host)).status).toBe(200);
  });
});

describe("a surface that is bound to every address", () => {
  it.each(["0.0.0.0", "::"])("answers for IP addresses and names of this machine, and for no other name: %s", async (address) => {
    const everywhere = app.surface("desk").forHosts([address]);
    const statusOf = async (host: string) => (await everywhere.fetch(new Request(`http://${host}/hello`))).status;
    for (const host of ["10.9.8.7", "[fe80::1]:80", "localhost"]) expect([host, await statusOf(host)]).toEqual([host, 200]);
    for (const host of ["evil.example", "10.9.8.7.evil.example"]) expect([host, await statusOf(host)]).toEqual([host, 421]);
  });
});

describe("a request that names its host in an odd way", () => {
  const ask = (target: string, ...headers: readonly string[]) =>
    rawCall(base, [`GET ${target} HTTP/1.1`, ...headers, "connection: close", "", ""].join("\r\n"));

  it.each([
    ["two hosts", "/hello", ["host: desk.example", "Host: desk.example"]],
    ["one with a user", "/hello", ["host: evil@desk.example"]],
    ["one with a path", "/hello", ["host: desk.example/evil"]],
    ["one with a backslash", "/hello", ["host: desk.example\\evil"]],
    ["one with a space", "/hello", ["host: desk.example evil"]],
    ["one whose port is not a number", "/hello", ["host: desk.example:evil"]],
    ["two hosts and a whole URL", "http://desk.example/hello", ["host: desk.example", "host: desk.example"]],
  ])("is refused as a bad request: %s", async (_what, target, headers) => {
    const answer = await ask(target, ...headers);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('{"error":"invalid_request"}');
  });

  it("counts the host of a whole URL in place of the header (RFC 9112, 3.2.2)", async () => {
    expect(await ask("http://evil.example/hello", "host: desk.example")).toMatch(/^HTTP\/1\.1 421 /);
    expect(await ask("http://desk.example/hello", "host: evil.example")).toMatch(/^HTTP\/1\.1 200 /);
    expect(await ask("http://desk.example/raw", "host: evil.example")).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("counts no other header as a host", async () => {
    expect(await ask("/hello", "host: desk.example", "from: evil.example", "x-original-host: evil.example")).toMatch(/ 200 /);
  });

  it("forgets nothing of the rule once it has answered", async () => {
    expect(await ask("/hello", "host: desk.example")).toMatch(/ 200 /);
    expect(await ask("/hello", "host: desk.example", "host: evil.example")).toMatch(/ 400 /);
    expect(await ask("/hello", "host: evil.example")).toMatch(/ 421 /);
  });
});

it("a surface of an app checks no host names: the embedding application does that", async () => {
  const answer = await app.surface("desk").fetch(new Request("http://evil.example/hello"));
  expect(answer.status).toBe(200);
});

it("every answer with a body keeps browsers from guessing what it is", async () => {
  for (const path of ["/hello", "/raw", "/nowhere"]) {
    for (const answer of [await fetch(`${base}${path}`), await bound.fetch(new Request(`${base}${path}`))]) {
      await answer.text();
      expect([path, answer.headers.get("x-content-type-options")]).toEqual([path, "nosniff"]);
    }
  }
});
