import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type WebSocketOptions, webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { isOriginAllowed, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openCrosswsHost } from "../../harness/crossws-host.ts";
import { type NamedService, serveNamed } from "../../harness/named-service.ts";
import { rawCall, statusOf } from "../../harness/raw-call.ts";
import { openDeafWebSocket, pingFrame, textFrame } from "../../harness/raw-session.ts";
import { openRealtimeHost, type RealtimeHost } from "../../harness/realtime-host.ts";
import { connectWebSocket, type Frame, type OpenOptions, openWebSocket } from "../../harness/web-socket-client.ts";

type Host = Omit<RealtimeHost, "server" | "attachment"> & Partial<RealtimeHost>;

const hosts: Readonly<Record<string, { open: (options: WebSocketOptions) => Promise<Host>; mount: string }>> = {
  "a Node server": { open: (options) => openRealtimeHost(webSocketRealtime(options)), mount: "" },
  "a server of crossws/server": { open: (options) => openCrosswsHost(webSocketRealtime(options)), mount: "/agent" },
};
const ALLOWED = "https://desk.example";

describe.each(Object.entries(hosts))("a plain WebSocket client on %s", (_name, { open, mount }) => {
  let host: Host;
  let service: NamedService;
  let url: string;
  const start = async (options: WebSocketOptions = {}, more?: Parameters<typeof serveNamed>[1]) => {
    await host?.[Symbol.asyncDispose]();
    host = await open(options);
    service = serveNamed(host.realtime, more);
    url = `${host.origin}${mount}/live/`;
  };
  beforeEach(() => start({ allowOrigin: (facts) => isOriginAllowed(facts, [ALLOWED]) }));
  afterEach(() => host[Symbol.asyncDispose]());
  const connect = (name: string, options?: OpenOptions) => connectWebSocket(url, { name }, options);

  it("is welcomed under the connection's id, and told how often it is asked whether it lives", async () => {
    const { welcome } = await connect("ada");
    expect(welcome).toEqual({ type: "welcome", id: service.idOf("ada"), pingIntervalMs: 25_000, pingTimeoutMs: 20_000 });
  });

  it("is refused with code and message, and then disconnected", async () => {
    await start({}, { admit: () => Promise.reject(new ports.ConnectionRefused("unauthorized", "Wrong token")) });
    const client = await openWebSocket(url);
    client.send({ type: "hello", hello: { token: "wrong" } });
    expect(await client.closed).toEqual({ code: 4403, reason: "refused" });
    expect(client.frames).toEqual([{ type: "refused", code: "unauthorized", message: "Wrong token" }]);
    expect(service.seen).toEqual([]);
  });

  it("learns nothing of an error inside the service", async () => {
    await start({}, { admit: () => Promise.reject(new Error("hunter2")) });
    const client = await openWebSocket(url);
    client.send({ type: "hello", hello: {} });
    expect(await client.closed).toEqual({ code: 1011, reason: "internal_error" });
    expect(client.frames).toEqual([{ type: "refused", code: "internal_error", message: "Internal error" }]);
  });

  it("gets an acknowledgement of an event that asks for one, once the service has the event", async () => {
    const client = await connect("ada");
    client.send({ type: "event", event: "word", payload: 1, ack: 7 });
    client.send({ type: "event", event: "word", payload: 2 });
    await service.saw("ada says word 2");
    expect(await client.frame(({ type }) => type === "ack")).toEqual({ type: "ack", ack: 7 });
    client.send({ type: "event", event: "word", ack: 8 });
    await client.frame(({ ack }) => ack === 8);
    expect(client.frames.filter(({ type }) => type === "ack")).toHaveLength(2);
    expect(service.seen).toEqual(["joined ada", "ada says word 1", "ada says word 2", "ada says word undefined"]);
  });

  it.each<[string, string | Uint8Array, { code: number; reason: string }]>([
    ["text that is not JSON", "{", { code: 1007, reason: "invalid_frame" }],
    ["an empty text", "", { code: 1007, reason: "invalid_frame" }],
    ["JSON that is not an object", "[1]", { code: 1007, reason: "invalid_frame" }],
    ["an unknown type", '{"type":"shout"}', { code: 1007, reason: "invalid_frame" }],
    ["an unknown key", '{"type":"event","event":"word","more":1}', { code: 1007, reason: "invalid_frame" }],
    ["an event whose name is a number", '{"type":"event","event":1}', { code: 1007, reason: "invalid_frame" }],
    ["a second hello", '{"type":"hello","hello":{}}', { code: 1007, reason: "invalid_frame" }],
    ["bytes", new TextEncoder().encode('{"type":"pong"}'), { code: 1003, reason: "binary_frame" }],
  ])("that sends %s is disconnected, and no other client", async (_what, frame, expected) => {
    const [client, other] = [await connect("ada"), await connect("bob")];
    client.socket.send(frame as string);
    expect(await client.closed).toEqual(expected);
    await service.saw("gone ada");
    other.send({ type: "event", event: "word", payload: {} });
    await service.saw("bob says word {}");
    expect(service.seen.filter((entry) => entry.startsWith("ada says"))).toEqual([]);
  });

  it("may send a frame of 128 KiB, and is disconnected for a larger one", async () => {
    const frameOf = (bytes: number) => {
      const around = JSON.stringify({ type: "event", event: "word", payload: "" }).length;
      return { type: "event", event: "word", payload: "x".repeat(bytes - around) };
    };
    const client = await connect("ada");
    client.send(frameOf(128 * 1024));
    await service.saw(`ada says word ${JSON.stringify(frameOf(128 * 1024).payload)}`);
    client.send(frameOf(128 * 1024 + 1));
    expect((await client.closed).code).toBe(1009);
    await service.saw("gone ada");
    expect(service.seen).toHaveLength(3);
  });

  it("that sends an event before its hello is disconnected", async () => {
    const client = await openWebSocket(url);
    client.send({ type: "event", event: "word" });
    expect(await client.closed).toEqual({ code: 1007, reason: "invalid_frame" });
  });

  it("that presents no hello in time is disconnected; so is one that the service does not decide on, and the decision is aborted", async () => {
    let asked: AbortSignal | undefined;
    await start({ helloTimeoutMs: 20 }, { admit: (_hello, signal) => ((asked = signal), new Promise(() => {})) });
    const expected = { code: 4408, reason: "hello_timeout" };
    expect(await (await openWebSocket(url)).closed).toEqual(expected);
    // On a busy machine, a hello may come too late to be decided on.
    const isAborted = async () => {
      const client = await openWebSocket(url);
      client.send({ type: "hello", hello: {} });
      expect(await client.closed).toEqual(expected);
      return asked?.aborted;
    };
    await expect.poll(isAborted).toBe(true);
  });

  it("that leaves before it is decided on has the decision aborted", async () => {
    const asked = Promise.withResolvers<AbortSignal>();
    await start({}, { admit: (_hello, signal) => (asked.resolve(signal), new Promise(() => {})) });
    const client = await openWebSocket(url);
    client.send({ type: "hello", hello: {} });
    const signal = await asked.promise;
    client.socket.close();
    await expect.poll(() => signal.aborted).toBe(true);
  });

  it("stays connected while it answers pings, and is disconnected if it does not", async () => {
    await start({ pingIntervalMs: 10, pingTimeoutMs: 1_000 });
    const [client, mute] = [await connect("ada"), await connect("bob", { isMute: true })];
    await service.saw("gone bob");
    expect(mute.frames.filter(({ type }) => type === "ping")).toHaveLength(1);
    client.send({ type: "event", event: "word", payload: {} });
    await service.saw("ada says word {}");
    expect(service.seen).not.toContain("gone ada");
  });

  it("whose connection is cut is gone", async () => {
    const deaf = await openDeafWebSocket(host.origin, { name: "ada" }, `${mount}/live/`);
    await service.saw("joined ada");
    deaf.resetAndDestroy();
    await service.saw("gone ada");
  });

  it("that is dropped learns that the service meant it", async () => {
    const client = await connect("ada");
    service.connections.drop(service.idOf("ada"));
    expect(await client.closed).toEqual({ code: 4410, reason: "dropped" });
  });

  it("that reads slower than the service sends is cut when more than 1 MiB waits, and holds up no other", async () => {
    const deaf = await openDeafWebSocket(host.origin, { name: "ada" }, `${mount}/live/`);
    const client = await connect("bob");
    await service.saw("joined ada");
    const text = "x".repeat(64 * 1024);
    let sent = 0;
    // What the system buffers is not counted, and differs from system to system.
    while (service.connections.send(service.idOf("ada"), "page", text)) {
      service.connections.send(service.idOf("bob"), "count", ++sent);
      await new Promise(setImmediate);
    }
    expect(service.seen).toContain("gone ada");
    // Long before the limit of events.
    expect(sent).toBeLessThan(1_000);
    await expect.poll(() => host.attachment?.open.size ?? 1).toBe(1);
    const last = await client.frame(({ payload }) => payload === sent);
    expect(client.frames.filter(({ type }) => type === "event")).toHaveLength(sent);
    expect(last).toEqual({ type: "event", event: "count", payload: sent });
    deaf.destroy();
  });

  it("that reads nothing is cut when more than the limit of events waits", async () => {
    await start({ backlog: { events: 10, bytes: 1024 * 1024 * 1024 } });
    const deaf = await openDeafWebSocket(host.origin, { name: "ada" }, `${mount}/live/`);
    await service.saw("joined ada");
    const text = "x".repeat(1024 * 1024);
    while (service.connections.send(service.idOf("ada"), "page", text)) await new Promise(setImmediate);
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
    expect(host.telemetry.lines).toMatchObject([{ level: "warn", fields: { path: "/live/", socket: service.idOf("ada") } }]);
    deaf.destroy();
  });

  it.each([
    ["acknowledgements", textFrame('{"type":"event","event":"word","ack":9007199254740991}')],
    ["answers to pings of the WebSocket protocol", pingFrame("x".repeat(125))],
  ])("that asks for %s and reads nothing is cut when more than the backlog waits", async (_what, frame) => {
    const received: string[] = [];
    await start({}, { receive: () => void received.push(service.seen.at(-1)!) });
    const deaf = await openDeafWebSocket(host.origin, { name: "ada" }, `${mount}/live/`);
    await service.saw("joined ada");
    const batch = Buffer.concat(Array.from({ length: 1_000 }, () => frame));
    // Far more than the system buffers between the two.
    for (let sent = 0; sent < 1_000 && !service.seen.includes("gone ada"); sent++) {
      if (!deaf.write(batch)) await Promise.race([once(deaf, "drain"), service.saw("gone ada")]);
    }
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
    expect(new Set(received)).not.toContain("gone ada");
    expect(host.telemetry.lines).toMatchObject([{ level: "warn", message: "A realtime client that reads too slowly was cut" }]);
    deaf.destroy();
  });

  it("of an allowed origin is welcome; one of a foreign origin is not opened, nor is the service asked", async () => {
    for (const origin of [ALLOWED, host.origin]) await connect("ada", { headers: { origin } });
    await expect(openWebSocket(url, { headers: { origin: "https://evil.example" } })).rejects.toThrow("not opened");
    const answer = await rawCall(host.origin, upgradeOf(`${mount}/live/`, ["Origin: https://evil.example"]));
    expect(statusOf(answer)).toBe(403);
    expect(answer).toContain('{"error":"origin_not_allowed"');
    expect(service.seen).toEqual(["joined ada", "joined ada"]);
  });

  it("a plain request without an upgrade gets an answer that asks for one", async () => {
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get("upgrade")]).toEqual([426, "websocket"]);
    expect(await answer.json()).toEqual({ error: "upgrade_required", message: "This path is for WebSockets" });
    expect((await fetch(`${host.origin}${mount}/hello`)).status).toBe(200);
  });

  it("is told when the service stops, whether or not it was admitted, and finds the path closed", async () => {
    const [client, silent] = [await connect("ada"), await openWebSocket(url)];
    await service.connections.close();
    for (const each of [client, silent]) expect(await each.closed).toEqual({ code: 1001, reason: "service_stopped" });
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
    await expect(openWebSocket(url)).rejects.toThrow("not opened");
    expect((await fetch(url)).status).toBe(404);
  });

  it("that comes back says where it was, and is told whether it misses anything", async () => {
    await start({}, { resume: (_who, last) => ({ resumePoint: last ?? "the beginning", isWhole: last === "place 1" }) });
    const first = await connect("ada");
    expect(first.welcome).toMatchObject({ place: "the beginning", isWhole: false });
    service.connections.send(service.idOf("ada"), "news", { n: 1 }, "place 1");
    const heard: Frame = await first.frame(({ type }) => type === "event");
    expect(heard).toEqual({ type: "event", event: "news", payload: { n: 1 }, place: "place 1" });
    first.socket.close();
    await service.saw("gone ada");
    const back = await connectWebSocket(url, { name: "ada" }, { last: heard["place"] });
    expect(back.welcome).toMatchObject({ place: "place 1", isWhole: true });
    expect(back.welcome["id"]).not.toBe(first.welcome["id"]);
  });
});

describe("on a Node server", () => {
  it("an app that closes leaves no connection, however little its clients take part", async () => {
    await using host = await openRealtimeHost(webSocketRealtime({}));
    const service = serveNamed(host.realtime);
    const deaf = await openDeafWebSocket(host.origin, { name: "ada" });
    await openWebSocket(`${host.origin}/live/`);
    await service.saw("joined ada");
    const closed = once(deaf.resume(), "close");
    await host.closeApp();
    await closed;
    await expect.poll(() => host.attachment.open.size).toBe(0);
  });

  it("a handshake that is not one of WebSocket 13 is refused", async () => {
    await using host = await openRealtimeHost(webSocketRealtime({}));
    serveNamed(host.realtime);
    const wrong = upgradeOf("/live/", []).replace("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 7");
    expect(statusOf(await rawCall(host.origin, wrong))).toBe(400);
  });

  it.each([{ maxMessageBytes: 0 }, { pingIntervalMs: -1 }, { backlog: { events: 1.5, bytes: 1 } }])(
    "an invalid limit stops the start: %j",
    async (options) => {
      await expect(openRealtimeHost(webSocketRealtime(options))).rejects.toThrow(RangeError);
    },
  );
});

/** The head of a request for a WebSocket. */
function upgradeOf(path: string, headers: readonly string[]): string {
  const fixed = ["Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  return [`GET ${path} HTTP/1.1`, ...fixed, "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", ...headers, "", ""].join("\r\n");
}
