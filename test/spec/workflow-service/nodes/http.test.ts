import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, LookupFunction } from "node:net";
import { hostname } from "node:os";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { httpNode, type HttpNodeOptions } from "@portico/workflow-nodes/http";
import { ports } from "@portico/core";
import * as v from "valibot";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { httpInput } from "../../../../adapters/workflow-nodes/src/http/http-input.ts";
import { hasOpenssl, makeCertificate } from "../../../harness/own-certificate.ts";
import { temporaryFolder } from "../../../harness/portico-process.ts";
import { deepList } from "../../../harness/deep-json.ts";
import { openNode, type OpenNode } from "../../../harness/run-node.ts";

interface Answered {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: unknown;
  readonly encoding?: string;
}

let server: Server;
let port: number;
let url: string;
let answer: RequestListener;
const seen: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[] = [];
const opened: OpenNode[] = [];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    seen.push({ method: request.method!, url: request.url!, headers: request.headers, body });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  port = (server.address() as AddressInfo).port;
  url = `http://127.0.0.1:${port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  seen.length = 0;
  answer = (_request, response) => response.end("ok");
});
afterEach(async () => {
  for (const node of opened.splice(0)) await node[Symbol.asyncDispose]();
});

async function open(options: HttpNodeOptions = { allow: ["127.0.0.1"] }): Promise<OpenNode> {
  const node = await openNode(httpNode(options));
  opened.push(node);
  return node;
}

async function get(more: Record<string, unknown> = {}): Promise<Answered> {
  const node = await open();
  return (await node.run({ url, ...more })) as Answered;
}

function send(body: string | Buffer, headers: Record<string, string | string[]> = {}, status = 200): RequestListener {
  return (_request, response) => response.writeHead(status, headers).end(body);
}

describe("http: what is sent", () => {
  it("is a GET without a body unless the definition says otherwise", async () => {
    await get();
    expect(seen[0]).toMatchObject({ method: "GET", url: "/", body: "" });
    expect(seen[0]!.headers["content-type"]).toBeUndefined();
    expect(seen[0]!.headers["content-length"]).toBeUndefined();
  });

  it("has the query of the URL and that of the definition", async () => {
    await get({ url: `${url}/a?b=1#c`, query: { d: "e f", g: [1, true], h: 2 } });
    expect(seen[0]!.url).toBe("/a?b=1&d=e+f&g=1&g=true&h=2");
  });

  it("sends JSON bodies, and texts unchanged", async () => {
    await get({ method: "POST", body: { a: [1, null] } });
    await get({ method: "PUT", body: "plain" });
    await get({ method: "PATCH", body: "<a/>", headers: { "Content-Type": "application/xml" } });
    await get({ method: "POST", body: null });
    expect(seen.map(({ body, headers }) => [body, headers["content-type"]])).toEqual([
      ['{"a":[1,null]}', "application/json"],
      ["plain", "text/plain;charset=utf-8"],
      ["<a/>", "application/xml"],
      ["null", "application/json"],
    ]);
  });

  it("has a key of run, node and attempt where `key` is true, and the same again for the same attempt", async () => {
    const node = await open();
    const given = { url, method: "POST", key: true };
    await node.run(given, { nodeId: "each[3].file", attempt: 2 });
    await node.run(given, { nodeId: "each[3].file", attempt: 2 });
    await node.run(given, { nodeId: "é\n", attempt: 3 });
    expect(seen.map(({ headers }) => headers["idempotency-key"])).toEqual([
      "run_1:each%5B3%5D.file:2",
      "run_1:each%5B3%5D.file:2",
      "run_1:%C3%A9%0A:3",
    ]);
  });

  it("has a key of run and node where `key` is `node`, the same for all attempts", async () => {
    const node = await open();
    const given = { url, method: "POST", key: "node" };
    for (const attempt of [1, 2]) await node.run(given, { nodeId: "file", attempt });
    expect(seen.map(({ headers }) => headers["idempotency-key"])).toEqual(["run_1:file", "run_1:file"]);
  });

  it.each([true, "node"])("has no other Idempotency-Key where `key` is %j", async (key) => {
    const node = await open();
    expect(node.check({ url, key, headers: { "Idempotency-Key": "mine" } })).toEqual([
      { path: ["headers", "Idempotency-Key"], message: "`key` sets this header" },
    ]);
  });

  it.each([
    ["host", "evil"],
    ["Connection", "close"],
    ["transfer-encoding", "chunked"],
    ["content-length", "5"],
    ["x-a", "b\r\nx-c: d"],
    ["x a", "b"],
  ])("has no header %s: %j of a definition's", async (name, value) => {
    const node = await open();
    expect(node.check({ url, headers: { [name]: value } })).toEqual([
      { path: ["headers", name], message: expect.stringMatching(/header/) as string },
    ]);
    const error = await node.failure({ url, headers: { [name]: value } });
    expect([error.code, error.retryable, seen]).toEqual(["http_request_invalid", false, []]);
  });

  it("has no body where the method is GET or HEAD", async () => {
    const node = await open();
    expect(node.check({ url, body: {} })).toMatchObject([{ path: ["body"] }]);
    expect((await node.failure({ url, method: "HEAD", body: "a" })).code).toBe("http_request_invalid");
  });

  it("may be sent again after a crash where it is a GET, a HEAD, or has a key", async () => {
    const { node } = await open();
    const repeatable = node.repeatable as (input: unknown) => boolean;
    expect(["GET", "HEAD", "POST", "DELETE"].map((method) => repeatable({ method, key: false }))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    for (const key of [true, "node"]) expect(repeatable({ method: "POST", key })).toBe(true);
  });
});

describe("http: what is answered", () => {
  it("is JSON where the answer says so, and text where what it says is untrue", async () => {
    answer = send('{"a":1}', { "content-type": "application/problem+json; charset=utf-8" });
    expect((await get()).body).toEqual({ a: 1 });
    answer = send("{", { "content-type": "application/json" });
    expect((await get()).body).toBe("{");
  });

  it("is text in the charset that the answer says", async () => {
    answer = send(Buffer.from([0x67, 0xfc, 0x6e]), { "content-type": "text/plain; charset=iso-8859-1" });
    expect((await get()).body).toBe("gün");
    answer = send("grün");
    expect(await get()).toMatchObject({ body: "grün" });
  });

  it("is base64 if it is not text, and says so", async () => {
    const bytes = Buffer.from([0, 255, 1]);
    answer = send(bytes, { "content-type": "image/png" });
    expect(await get()).toMatchObject({ body: "AP8B", encoding: "base64" });
    answer = send(bytes, { "content-type": "text/plain" });
    expect(await get()).toMatchObject({ body: "AP8B", encoding: "base64" });
  });

  it("is null if the answer has no body", async () => {
    answer = send("", {}, 204);
    const { status, body, encoding } = await get();
    expect([status, body, encoding]).toEqual([204, null, undefined]);
    answer = send("", { "content-encoding": "gzip" }, 204);
    expect((await get()).body).toBeNull();
    answer = send("", { "content-length": "99999999", "content-encoding": "gzip" });
    expect((await get({ method: "HEAD" })).body).toBeNull();
  });

  it("has headers by lowercase name, cookies as a list", async () => {
    answer = send("", { "X-Kind": "a", "Set-Cookie": ["b=1", "c=2"], vary: ["d", "e"] });
    expect((await get()).headers).toMatchObject({ "x-kind": "a", "set-cookie": ["b=1", "c=2"], vary: "d, e" });
  });

  it.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
  ])("is decompressed where a server compresses unasked: %s", async (encoding, compress) => {
    answer = send(compress('{"a":1}'), { "content-type": "application/json", "content-encoding": encoding });
    const { body, headers } = await get();
    expect(seen[0]!.headers["accept-encoding"]).toBe("identity");
    expect(body).toEqual({ a: 1 });
    expect(headers["content-encoding"]).toBeUndefined();
  });

  it("is one of the expected statuses: by default 200-299", async () => {
    answer = send("hidden-word", {}, 404);
    const node = await open();
    const error = await node.failure({ url: `${url}/secret-path?q=secret` });
    expect([error.code, error.message, error.retryable]).toEqual(["http_status", `${url} answered with status 404`, false]);
    expect(await node.run({ url, expect: ["200-299", 404] })).toMatchObject({ status: 404, body: "hidden-word" });
    expect((await node.failure({ url, expect: ["200-403", "405-599"] })).code).toBe("http_status");
  });

  it("is expected as a number or a range, and a class of statuses is answered with what to write", () => {
    for (const expected of ["2xx", "200", "200-299", 204]) {
      const { issues } = v.safeParse(httpInput, { url, expect: [expected] });
      const sentence = 'Write a status such as `204`, or a range such as `"200-299"`';
      expect(issues?.map(({ message }) => message)).toEqual(expected === "2xx" ? [sentence] : undefined);
    }
  });

  it.each([400, 401, 404, 409, 422, 408, 425, 429, 500, 503])("says whether %i may pass", async (status) => {
    answer = send("", {}, status);
    const node = await open();
    expect((await node.failure({ url })).retryable).toBe([408, 425, 429, 500, 503].includes(status));
  });
});

describe("http: how much is answered", () => {
  const most = ports.NODE_OUTPUT_BYTES;
  const stream = (bytes: number) => (_request: IncomingMessage, response: ServerResponse) => {
    response.setHeader("content-type", "text/plain");
    let left = bytes;
    const write = (): void => {
      while (left > 0 && !response.destroyed) {
        const size = Math.min(left, 64 * 1024);
        left -= size;
        if (!response.write("a".repeat(size))) return void response.once("drain", write);
      }
      response.end();
    };
    write();
  };

  it("is JSON that nests as deep as an output may", async () => {
    const json = { "content-type": "application/json" };
    answer = send(deepList(ports.NODE_OUTPUT_LEVELS - 1), json);
    expect(JSON.stringify((await get()).body)).toHaveLength(2 * (ports.NODE_OUTPUT_LEVELS - 1));
    for (const levels of [ports.NODE_OUTPUT_LEVELS, 10_000]) {
      answer = send(deepList(levels), json);
      expect(await (await open()).failure({ url })).toMatchObject({ code: "http_too_deep", retryable: false });
    }
  });

  it("is bounded so that the whole output fits", async () => {
    answer = stream(most - 2_000);
    expect(((await get()).body as string).length).toBe(most - 2_000);
    for (const bytes of [most, most + 1, 50 * most]) {
      answer = stream(bytes);
      const node = await open();
      const error = await node.failure({ url });
      expect([error.code, error.retryable, error.message]).toEqual([
        "http_too_large",
        false,
        `${url} answered with more than 4 MiB`,
      ]);
    }
  });

  it("is bounded where it announces itself, before it is read", async () => {
    answer = (_request, response) => void response.writeHead(200, { "content-length": most + 1 }).write("a");
    const node = await open();
    expect((await node.failure({ url })).code).toBe("http_too_large");
  });

  it("is bounded after it was decompressed", async () => {
    const bomb = gzipSync(Buffer.alloc(300 * 1024 * 1024));
    answer = send(bomb, { "content-type": "text/plain", "content-encoding": "gzip" });
    const before = process.memoryUsage().rss;
    const node = await open();
    expect((await node.failure({ url })).code).toBe("http_too_large");
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  it("counts base64 and escapes", async () => {
    answer = send(Buffer.alloc(most - 1_000_000, 1), { "content-type": "image/png" });
    const node = await open();
    expect((await node.failure({ url })).code).toBe("http_too_large");
    answer = send(Buffer.alloc(most - 1_000_000, '"'), { "content-type": "text/plain" });
    expect((await node.failure({ url })).code).toBe("http_too_large");
  });
});

describe("http: where it may go", () => {
  const refused = async (address: string, options: HttpNodeOptions = {}) => {
    const node = await open(options);
    return node.failure({ url: address });
  };

  it.each(["http://127.0.0.1", "http://[::1]", "http://localhost", "http://a.localhost.", "http://[::ffff:127.0.0.1]"])(
    "refuses %s, when the definition is loaded and when it runs",
    async (host) => {
      const node = await open({});
      expect(node.check({ url: `${host}:${port}/` })).toEqual([
        { path: ["url"], message: expect.stringMatching(/may not reach/) as string },
      ]);
      const error = await node.failure({ url: `${host}:${port}/?secret` });
      expect([error.code, error.retryable]).toEqual(["http_address_refused", false]);
      expect(error.message).not.toContain("secret");
      expect(seen).toEqual([]);
    },
  );

  it.each([
    ...[
      "http://2130706433",
      "http://0x7f000001",
      "http://0177.0.0.1",
      "http://127.1",
      "http://127.0.1",
      "http://0x8.8.8.8",
      "http://134744072",
    ],
    ...["http://8.8.8.8.", "http:\\\\0x7f.1", "http:0x7f.1", "http://１２７.0.0.1", "http://@127.1"],
    ...[
      "http://[fe80::1%25eth0]",
      "ftp://example.com",
      "file:///etc/passwd",
      "http://user:pass@example.com",
      "//example.com",
      "nonsense",
      "",
    ],
  ])("refuses the address %s as it is written", async (address) => {
    const node = await open({ allow: ["127.0.0.1", "8.8.8.8"] });
    expect(node.check({ url: address })).toMatchObject([{ path: ["url"] }]);
    expect((await node.failure({ url: address })).code).toBe("http_address_refused");
    expect(seen).toEqual([]);
  });

  it("refuses a name that leads to an address of this network", async () => {
    const lookup: LookupFunction = (_name, _options, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]);
    const error = await refused(`http://harmless.example:${port}/`, { lookup });
    expect([error.code, error.retryable]).toEqual(["http_address_refused", false]);
    expect(seen).toEqual([]);
    // The machine's own name, by the machine's own resolver.
    expect(["http_address_refused", "http_unreachable"]).toContain((await refused(`http://${hostname()}:${port}/`)).code);
    expect(seen).toEqual([]);
  });

  it("connects to the very address that it checked, though the name leads elsewhere a moment later", async () => {
    const asked: string[] = [];
    const lookup: LookupFunction = (name, _options, callback) => {
      asked.push(name);
      callback(null, [{ address: asked.length === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }]);
    };
    answer = (_request, response) => response.writeHead(200, { connection: "close" }).end("ok");
    const node = await open({ allow: ["127.0.0.1"], lookup });
    expect(await node.run({ url: `http://rebinding.example:${port}/` })).toMatchObject({ body: "ok" });
    expect(asked).toEqual(["rebinding.example"]);
    expect((await node.failure({ url: `http://rebinding.example:${port}/` })).code).toBe("http_address_refused");
    expect(seen).toHaveLength(1);
  });

  it("takes of several addresses of a name those that may be reached", async () => {
    const lookup: LookupFunction = (_name, _options, callback) =>
      callback(null, [
        { address: "127.0.0.2", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ]);
    const node = await open({ allow: ["127.0.0.1"], lookup });
    expect(await node.run({ url: `http://two.example:${port}/` })).toMatchObject({ body: "ok" });
    expect(seen).toHaveLength(1);
  });

  it.each([
    ["127.0.0.1", true],
    ["127.0.0.0/8", true],
    ["::1", false],
    ["127.0.0.1:1", false],
    ["localhost", false],
    ["example.com", false],
    ["127.0.0.2/32", false],
  ])("with %s allowed reaches 127.0.0.1: %s", async (entry, isReached) => {
    const node = await open({ allow: [entry] });
    const outcome = await node.run({ url }).catch((error: ports.NodeFailed) => error.code);
    expect(outcome).toEqual(isReached ? expect.objectContaining({ status: 200 }) : "http_address_refused");
    expect(node.check({ url })).toHaveLength(isReached ? 0 : 1);
  });

  it.each(["localhost", "LOCALHOST", "127.0.0.1", "PORT"])("with %s allowed reaches localhost", async (entry) => {
    const allow = [entry === "PORT" ? `localhost:${port}` : entry.replace("PORT", String(port))];
    const node = await open({ allow });
    expect(await node.run({ url: `http://localhost:${port}/` })).toMatchObject({ status: 200 });
  });

  it.each([
    "",
    "http://a.example",
    "a.example/b",
    "10.0.0.0/33",
    "::/129",
    "a:b",
    "a.example:0",
    "*",
    "a b",
    "999.1.1.1/8",
    "1.2.3/8",
  ])("refuses to open with %j as something to allow", async (entry) => {
    await expect(open({ allow: [entry] })).rejects.toThrow(TypeError);
  });
});

describe("http: redirects", () => {
  const redirect = (routes: Record<string, readonly [status: number, location: string]>): RequestListener => {
    return (request, response) => {
      const route = routes[request.url!];
      if (route) response.writeHead(route[0], { location: route[1] }).end("moved");
      else response.end("there");
    };
  };

  it.each([
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [307, "POST", "POST", '{"a":1}'],
    [308, "PUT", "PUT", '{"a":1}'],
    [301, "DELETE", "DELETE", '{"a":1}'],
  ])("after %i make of %s a %s", async (status, method, becomes, body) => {
    answer = redirect({ "/": [status, "/there?x=1"] });
    expect((await get({ method, body: { a: 1 }, headers: { authorization: "a" } })).body).toBe("there");
    expect(seen[1]).toMatchObject({ method: becomes, url: "/there?x=1", body });
    expect(seen[1]!.headers["content-type"]).toBe(body ? "application/json" : undefined);
    expect(seen[1]!.headers.authorization).toBe("a");
  });

  it("are followed five times", async () => {
    const steps = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [at ? `/${at}` : "/", [302, `/${at + 1}`] as const]));
    answer = redirect(steps(5));
    expect((await get()).body).toBe("there");
    answer = redirect(steps(6));
    const node = await open();
    expect(await node.failure({ url })).toMatchObject({
      code: "http_status",
      retryable: false,
      message: expect.stringMatching(/302/),
    });
  });

  it("are not read to their end, and the last one is no body of the failure", async () => {
    let closed = 0;
    answer = (_request, response) => {
      response.on("close", () => closed++);
      response.writeHead(302, { location: "/" }).write("endless");
    };
    const node = await open();
    expect((await node.failure({ url })).answer).toEqual({ status: 302 });
    await expect.poll(() => closed).toBe(6);
  });

  it("are answered where they are expected, and fail where they lead nowhere", async () => {
    answer = redirect({ "/": [302, "/there"] });
    expect(await get({ expect: [302] })).toMatchObject({ status: 302, body: "moved" });
    answer = send("", {}, 302);
    expect((await (await open()).failure({ url })).code).toBe("http_status");
  });

  it("take no credentials to another origin", async () => {
    const headers = { authorization: "a", cookie: "b", "x-api-key": "c", "x-plain": "d", accept: "e" };
    answer = redirect({ "/": [307, `http://localhost:${port}/there`] });
    const node = await open({ allow: ["127.0.0.1", "localhost"] });
    await node.run({ url, method: "POST", key: true, headers });
    const names = Object.keys(headers).concat("idempotency-key");
    expect(names.filter((name) => seen[0]!.headers[name] === undefined)).toEqual([]);
    expect(names.filter((name) => seen[1]!.headers[name] !== undefined)).toEqual(["x-plain", "accept"]);
    expect(seen[1]!.headers.host).toBe(`localhost:${port}`);
  });

  it.each([
    "http://127.0.0.2:PORT/",
    "http://[::ffff:7f00:2]:PORT/",
    "//169.254.169.254/",
    "http://0x7f.1:PORT/",
    "file:///etc/passwd",
    "http://a:b@127.0.0.1:PORT/",
  ])("to %s are refused, without naming it", async (location) => {
    answer = redirect({ "/": [302, location.replace("PORT", String(port))] });
    const node = await open();
    const error = await node.failure({ url });
    expect([error.code, seen.length]).toEqual(["http_address_refused", 1]);
  });

  it.skipIf(!hasOpenssl())("from https to http are refused (skipped where there is no openssl)", async () => {
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    const { certificate, key } = makeCertificate(folder.path, ["IP:127.0.0.1"]);
    const trusted = getCACertificates();
    setDefaultCACertificates([...trusted, certificate]);
    onTestFinished(() => setDefaultCACertificates(trusted));
    const secure = createSecureServer({ cert: certificate, key }, (request, response) => {
      if (request.url === "/down") response.writeHead(302, { location: url }).end();
      else if (request.url === "/across") response.writeHead(302, { location: "/there" }).end();
      else response.end("there");
    });
    onTestFinished(() => void secure.close());
    await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
    const origin = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
    const node = await open();
    expect(((await node.run({ url: `${origin}/across` })) as Answered).body).toBe("there");
    const error = await node.failure({ url: `${origin}/down` });
    expect([error.code, seen.length]).toEqual(["http_address_refused", 0]);
  });
});

describe("http: what goes wrong", () => {
  it("is http_unreachable if no server answers, or the answer ends early", async () => {
    const node = await open();
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const closed = (gone.address() as AddressInfo).port;
    await new Promise((resolve) => gone.close(resolve));
    const error = await node.failure({ url: `http://127.0.0.1:${closed}/?secret` });
    expect([error.code, error.retryable, error.message]).toEqual([
      "http_unreachable",
      true,
      `http://127.0.0.1:${closed} could not be reached, or ended its answer early (ECONNREFUSED)`,
    ]);
    answer = (_request, response) => {
      response.writeHead(200, { "content-length": 10 }).write("a");
      setTimeout(() => response.destroy(), 20);
    };
    expect((await node.failure({ url })).code).toBe("http_unreachable");
    answer = send("no gzip", { "content-encoding": "gzip" });
    expect((await node.failure({ url })).code).toBe("http_unreachable");
  });

  it.each<[string, { method?: string; times?: number; kept?: boolean; begun?: string }, string, number]>([
    ["a GET over a kept connection", {}, "ok", 2],
    ["a HEAD over a kept connection", { method: "HEAD" }, "ok", 2],
    ["a GET whose new connection is closed, too", { times: 2 }, "http_unreachable", 2],
    ["a GET over a new connection", { kept: false }, "http_unreachable", 1],
    ["a GET whose answer had begun", { begun: "HTTP/1.1 200" }, "http_unreachable", 1],
    ["a POST over a kept connection", { method: "POST" }, "http_unreachable", 1],
    ["a DELETE over a kept connection", { method: "DELETE" }, "http_unreachable", 1],
  ])("if the server closes the connection, %s is sent again or fails", async (_what, given, end, sent) => {
    const { method = "GET", times = 1, kept = true, begun = "" } = given;
    const node = await open();
    const known = new Set<unknown>();
    let closed = 0;
    answer = ({ socket, url: path }, response) => {
      const isKept = known.has(socket);
      known.add(socket);
      const isSpared = closed === 0 ? path === "/before" || isKept !== kept : closed === times;
      if (isSpared) return void response.end("ok");
      closed++;
      socket.end(begun);
    };
    let outcome: unknown;
    // A request that follows another at once may still get a connection of its own.
    for (let tried = 0; closed === 0 && tried < 100; tried++) {
      for (let before = kept ? 2 : 0; before > 0; before--) await node.run({ url: `${url}/before` });
      seen.length = 0;
      outcome = await node.run({ url, method }).then(
        () => "ok",
        ({ code }: ports.NodeFailed) => code,
      );
    }
    expect([outcome, seen.length, closed]).toEqual([end, sent, times]);
    expect((await node.run({ url })) as Answered).toMatchObject({ body: "ok" });
  });

  it("is http_timeout where an answer does not begin, or stops", async () => {
    const node = await open({ allow: ["127.0.0.1"], timeouts: { headersMs: 200, idleMs: 200 } });
    answer = () => undefined;
    expect(await node.failure({ url })).toMatchObject({ code: "http_timeout", retryable: true });
    answer = (_request, response) => void response.writeHead(200).write("a");
    expect((await node.failure({ url })).code).toBe("http_timeout");
  });

  it("rejects with the signal's reason, and lets go of the connection, wherever it is", async () => {
    const node = await open();
    for (const late of [
      () => undefined,
      (_request: unknown, response: ServerResponse) => void response.writeHead(200).write("a"),
    ]) {
      const stopping = new AbortController();
      const reason = new Error("the run was cancelled");
      const closed = new Promise((resolve) => {
        answer = (request, response) => {
          request.socket.once("close", resolve);
          late(request, response);
          setTimeout(() => stopping.abort(reason), 100);
        };
      });
      await expect(node.run({ url }, { signal: stopping.signal })).rejects.toBe(reason);
      await closed;
    }
  });
});
