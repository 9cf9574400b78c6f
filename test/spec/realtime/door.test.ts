import { isOriginAllowed } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type NamedService, serveNamed } from "../../harness/named-service.ts";
import { rawCall, statusOf } from "../../harness/raw-call.ts";
import { openRawSession, openRawSocket } from "../../harness/raw-session.ts";
import { openSocketHost, type SocketHost } from "../../harness/socket-host.ts";

let host: SocketHost;
let service: NamedService;
beforeEach(async () => {
  host = await openSocketHost({ allowOrigin: (facts) => isOriginAllowed(facts, ["https://app.example"]) });
  service = serveNamed(host.realtime);
});
afterEach(() => host[Symbol.asyncDispose]());

const POLLING = "/live/?EIO=4&transport=polling";
const WEBSOCKET = "/live/?EIO=4&transport=websocket";
const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
];
/** One request over a connection of its own, as it is written here. */
const raw = (line: string, headers: readonly string[] = [], body = "") => {
  const own = headers.some((each) => /^connection:/i.test(each)) ? [] : ["Connection: close"];
  return rawCall(
    host.origin,
    `${line} HTTP/1.1\r\n${[`Host: ${new URL(host.origin).host}`, ...own, ...headers].join("\r\n")}\r\n\r\n${body}`,
  );
};

describe("an origin that is not allowed", () => {
  const ways: ReadonlyArray<[string, string, readonly string[]]> = [
    ["a new session", `GET ${POLLING}`, []],
    ["a WebSocket", `GET ${WEBSOCKET}`, UPGRADE],
    ["a forged session", `GET ${POLLING}&sid=forged`, []],
    ["a message", `POST ${POLLING}&sid=forged`, ["Content-Length: 0"]],
    ["a preflight", `OPTIONS ${POLLING}`, ["Access-Control-Request-Method: POST"]],
    ["a method that is none", `DELETE ${POLLING}`, []],
    ["a query that does not fit", `GET ${WEBSOCKET}`, []],
  ];
  it.each(ways)("is 403 origin_not_allowed before anything else: %s (open points 4)", async (_what, line, headers) => {
    for (const origin of ["https://evil.example", "null", host.origin.replace("http:", "ftp:")]) {
      const answer = await raw(line, [...headers, `Origin: ${origin}`]);
      expect(statusOf(answer), origin).toBe(403);
      expect(answer).toContain('{"error":"origin_not_allowed"');
      expect(answer.toLowerCase()).not.toContain("access-control-");
    }
  });

  it("cannot go on with a session that another origin began", async () => {
    const { sid } = await openRawSession(host.origin);
    const answer = await raw(`GET ${POLLING}&sid=${sid}`, ["Origin: https://evil.example"]);
    expect(statusOf(answer)).toBe(403);
  });
});

describe("an origin that is allowed", () => {
  it.each([
    ["none", () => undefined],
    ["the service's own", () => host.origin],
    ["a listed one", () => "https://app.example"],
  ])("connects with both transports: %s", async (_what, origin) => {
    const headers = origin() === undefined ? [] : [`Origin: ${origin()}`];
    const polled = await raw(`GET ${POLLING}`, headers);
    expect(statusOf(polled)).toBe(200);
    expect(/^access-control-allow-origin: (.*)\r$/m.exec(polled)?.[1]).toBe(origin());
    expect(polled.toLowerCase()).toContain("vary: origin");
    expect(polled.toLowerCase()).not.toContain("access-control-allow-credentials");
    const client = await host.connect(
      { name: "ada" },
      { transports: ["websocket"], extraHeaders: origin() ? { origin: origin()! } : {} },
    );
    expect(client.connected).toBe(true);
  });

  it("is told by a preflight what it may send", async () => {
    const answer = await raw(`OPTIONS ${POLLING}`, ["Origin: https://app.example", "Access-Control-Request-Method: POST"]);
    expect(statusOf(answer)).toBe(204);
    expect(answer).toContain("access-control-allow-origin: https://app.example");
    expect(answer).toContain("access-control-allow-methods: GET, POST");
  });

  it("without a configuration, is only the service's own origin", async () => {
    await using plain = await openSocketHost();
    serveNamed(plain.realtime);
    const ask = (origin: string) => fetch(plain.origin + POLLING, { headers: { origin } });
    expect([(await ask(plain.origin)).status, (await ask("https://app.example")).status]).toEqual([200, 403]);
  });
});

describe("a request that fits no session", () => {
  it.each(["forged", "__proto__", "constructor", "%00"])("is 400 with the session id %s, on both transports", async (sid) => {
    expect(statusOf(await raw(`GET ${POLLING}&sid=${sid}`))).toBe(400);
    expect(statusOf(await raw(`POST ${POLLING}&sid=${sid}`, ["Content-Length: 2"], "40"))).toBe(400);
    expect(statusOf(await raw(`GET ${WEBSOCKET}&sid=${sid}`, UPGRADE))).toBe(400);
  });

  it("gets an answer if it names the transport websocket but is a plain GET, also for an existing session", async () => {
    const client = await host.connect({ name: "ada" }, { transports: ["websocket"] });
    const { sid } = await openRawSession(host.origin);
    for (const id of [client.io.engine.id, sid, "forged"]) {
      expect(statusOf(await raw(`GET ${WEBSOCKET}&sid=${id}`))).toBe(400);
      expect(statusOf(await raw(`GET ${POLLING}&transport=websocket&sid=${id}`))).toBe(400);
    }
    expect(statusOf(await raw(`GET ${WEBSOCKET}`))).toBe(400);
    expect(service.connections.has(service.idOf("ada"))).toBe(true);
  });

  it.each([
    ["a WebSocket for polling", `GET ${POLLING}`, UPGRADE],
    ["a transport twice", `GET ${POLLING}&transport=websocket`, []],
    ["a session id twice", `GET ${POLLING}&sid=a&sid=b`, []],
    ["no transport", "GET /live/?EIO=4", []],
    ["no query", "GET /live/", []],
    ["an older protocol", "GET /live/?EIO=3&transport=polling", []],
    ["an older protocol over a WebSocket", "GET /live/?EIO=3&transport=websocket", UPGRADE],
    ["a handshake by POST", `POST ${POLLING}`, ["Content-Length: 0"]],
  ])("is 400: %s", async (_what, line, headers) => {
    expect(statusOf(await raw(line, headers))).toBe(400);
  });

  it.each(["PUT", "DELETE", "PATCH", "HEAD"])("is 405 by %s, also for an existing session", async (method) => {
    const { sid } = await openRawSession(host.origin);
    const answer = await raw(`${method} ${POLLING}&sid=${sid}`);
    expect(statusOf(answer)).toBe(405);
    expect(answer).toContain("allow: GET, POST, OPTIONS");
  });

  it("leaves the path's neighbours to the routes", async () => {
    expect(await (await fetch(`${host.origin}/hello`)).text()).toBe('"agent"');
    for (const other of ["/live", "/live/more", "/socket.io/"]) {
      expect((await fetch(`${host.origin}${other}?EIO=4&transport=polling`)).status).toBe(404);
    }
  });

  it("is an ordinary request where it asks for h2c", async () => {
    const h2c = ["Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"];
    expect(await raw("GET /hello", h2c)).toMatch(/^HTTP\/1\.1 200 [^]*"agent"/);
    expect(await raw(`GET ${POLLING}`, h2c)).toMatch(/^HTTP\/1\.1 200 [^]*"sid"/);
  });
});

describe("a message that is larger than 128 KiB", () => {
  const word = "x".repeat(128 * 1024 - '42["word",""]'.length);

  it("ends a WebSocket, and only that", async () => {
    const other = await host.connect({ name: "bob" });
    const client = await host.connect({ name: "ada" }, { transports: ["websocket"] });
    client.emit("word", `${word}x`);
    await service.saw("gone ada");
    other.emit("word", 1);
    await service.saw("bob says word 1");
    expect(service.seen.filter((entry) => entry.startsWith("ada says"))).toEqual([]);
  });

  it("is 413 as a body that says its length, before it is sent", async () => {
    const { sid } = await openRawSession(host.origin, { name: "ada" });
    const answer = await raw(`POST ${POLLING}&sid=${sid}`, [`Content-Length: ${128 * 1024 + 1}`, "Content-Type: text/plain"]);
    expect(statusOf(answer)).toBe(413);
    expect(answer).toContain('{"error":"body_too_large"');
  });

  it("is 413 as a body that does not, without reading on", async () => {
    const { sid } = await openRawSession(host.origin, { name: "ada" });
    const chunk = "x".repeat(100 * 1024);
    const answer = await raw(
      `POST ${POLLING}&sid=${sid}`,
      ["Connection: keep-alive", "Transfer-Encoding: chunked", "Content-Type: text/plain"],
      `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(2),
    );
    expect(statusOf(answer)).toBe(413);
    expect(service.seen).toEqual(["joined ada"]);
  });

  it("is taken up to that size, on both transports", async () => {
    const session = await openRawSession(host.origin, { name: "ada" });
    expect((await session.post(`42["word","${word}"]`)).status).toBe(200);
    await service.saw(`ada says word "${word}"`);
    const socket = await openRawSocket(host.origin);
    await socket.next();
    socket.send('40{"name":"bob"}');
    await socket.next();
    socket.send(`42["word","${word}"]`);
    await service.saw(`bob says word "${word}"`);
    socket.close();
  });
});
