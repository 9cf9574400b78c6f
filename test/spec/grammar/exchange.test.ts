import { once } from "node:events";
import { connect } from "node:net";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, defineErrors, definePlugin, eachChunk, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, hostKinds, openHost } from "../../harness/hosts.ts";

const TEXT = { "content-type": "text/plain" };
const contract = defineContract(
  { surface: "proxy", auth: "open", envelope: (error) => ({ error: error.code }) },
  {
    run: {
      method: "POST",
      path: "/run",
      summary: "",
      accepts: ["text/plain"],
      bodyLimit: 10_000_000,
      query: v.strictObject({ how: v.optional(v.string(), "echo") }),
      success: reply.exchange(["text/plain"]),
      errors: defineErrors({ tired: { status: 503 } }),
    },
    read: { method: "GET", path: "/run", summary: "", success: reply.exchange(["text/plain"]) },
  },
);

describe.each(hostKinds)("an exchange on a %s host", (kind) => {
  it("reads the body and writes the answer as streams, with headers that come several times", async () => {
    await using service = await open(kind);
    const response = await service.run("echo", { body: "hello ".repeat(50_000) });
    expect([response.status, response.headers.get("content-type"), response.headers.getSetCookie()]).toEqual([
      201,
      "text/plain",
      ["a=1", "b=2"],
    ]);
    expect(response.headers.get("x-portico-request-id")).toMatch(/^req_/);
    expect((await response.text()).length).toBe(300_000);
  });

  it("gives query, headers, head and nothing that was not declared", async () => {
    await using service = await open(kind);
    const response = await service.run("show", { headers: { "x-one": "1" } });
    expect(await response.json()).toEqual({
      query: { how: "show" },
      header: "1",
      method: "POST",
      path: "/run",
      body: "undefined",
      params: "undefined",
    });
    expect((await service.call("/run?how=x&more=1", { method: "POST", headers: TEXT })).status).toBe(400);
  });

  it.each([
    ["a declared error", "tired", [503, { error: "tired" }]],
    ["any other error", "crash", [500, { error: "internal_error" }]],
    ["an end without an answer", "mute", [500, { error: "internal_error" }]],
    ["a head that is none", "bad-head", [500, { error: "internal_error" }]],
  ])("that ends before its head with %s is refused in the envelope", async (_what, how, expected) => {
    await using service = await open(kind);
    const response = await service.run(how);
    expect([response.status, await response.json()]).toEqual(expected);
    expect(service.telemetry.requests).toMatchObject([{ status: response.status }]);
  });

  it("that fails after its head cuts the answer, and says why in the log", async () => {
    await using service = await open(kind);
    const response = await service.run("break");
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    expect(service.telemetry.lines).toMatchObject([
      { level: "error", message: "movers.run broke after its head", cause: { name: "RangeError" } },
    ]);
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: "answer_broken" }]);
  });

  it("cannot be answered twice", async () => {
    await using service = await open(kind);
    await expect(service.run("twice").then((response) => response.text())).rejects.toThrow();
    expect(service.telemetry.lines).toMatchObject([{ message: "movers.run broke after its head" }]);
  });

  it.each([204, 304])("can answer %i, which has no body", async (status) => {
    await using service = await open(kind);
    const response = await service.run(`status-${status}`);
    expect([response.status, await response.text()]).toEqual([status, ""]);
  });

  it("answers HEAD by the GET route, without the body", async () => {
    await using service = await open(kind);
    const response = await service.call("/run", { method: "HEAD" });
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([200, "text/plain", ""]);
    expect((await service.call("/run")).status).toBe(200);
    expect((await service.call("/run", { method: "PUT" })).headers.get("allow")).toBe("POST, GET, HEAD");
  });

  it("aborts its signal when the caller leaves before the head", async () => {
    await using service = await open(kind);
    const leaving = new AbortController();
    const call = service.run("wait", { signal: leaving.signal }).then(
      ({ status }) => status,
      () => "rejected",
    );
    await service.began;
    leaving.abort();
    await service.aborted;
    // Over a network there is no answer any more; in process it says what the log says.
    expect(await call).toBe(kind === "node" ? "rejected" : 499);
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 499 }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("aborts its signal when the caller leaves in the middle of the answer", async () => {
    await using service = await open(kind);
    const response = await service.run("drip");
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    await service.aborted;
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 200, error: undefined }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("holds its writer back while the reader is slow", async () => {
    await using service = await open(kind);
    const response = await service.run("flood");
    const reader = response.body!.getReader();
    await reader.read();
    await service.heldBack;
    await reader.cancel();
    await service.aborted;
  });

  it("sends the head of an event stream at once", async () => {
    await using service = await open(kind);
    const leaving = new AbortController();
    const response = await service.run("silent-events", { signal: leaving.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    leaving.abort();
    await service.aborted;
  });

  it("notes what is known only at the end of the answer", async () => {
    await using service = await open(kind);
    await (await service.run("note-late")).text();
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ outputTokens: 7, status: 200 }]);
  });
});

describe("a refused upload on a node host", () => {
  const upload = async (service: Awaited<ReturnType<typeof open>>) => {
    const socket = connect(Number(new URL(service.origin!).port), "127.0.0.1");
    socket.on("error", () => {});
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.write(
      "POST /run?how=tired HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 9000000\r\n\r\nthe beginning",
    );
    await once(socket, "data");
    return { socket, text: () => Buffer.concat(received).toString() };
  };

  it("gets its error answer while it is still sending, and may finish", async () => {
    await using service = await open("node");
    const { socket, text } = await upload(service);
    expect(text()).toContain("HTTP/1.1 503");
    socket.write("x".repeat(9_000_000 - "the beginning".length));
    socket.write("POST /run?how=status-204 HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n\r\n");
    while (!text().includes("HTTP/1.1 204")) await once(socket, "data");
    // What was given to the refused upload is not held against those after it.
    await service.clock.advance(10_000);
    socket.write("POST /run?how=status-204 HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n\r\n");
    while (text().split("HTTP/1.1 204").length < 3) await once(socket, "data");
    socket.destroy();
  });

  it("is aborted if it has not finished two seconds later", async () => {
    await using service = await open("node");
    const { socket } = await upload(service);
    const closed = once(socket, "close");
    await service.clock.advance(1_999);
    expect(socket.destroyed).toBe(false);
    await service.clock.advance(1);
    await closed;
  });
});

async function open(kind: HostKind) {
  const telemetry = createMemoryTelemetry();
  const clock = createManualClock();
  const began = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const heldBack = Promise.withResolvers<void>();
  const movers = definePlugin({
    name: "movers",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({
      async run({ exchange, query, fail, signal, head, body, params, trace }) {
        const { how } = query;
        const isAborted = new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        void isAborted.then(() => aborted.resolve());
        if (how.startsWith("status-")) return void exchange.respond(Number(how.slice(7)), {}).end();
        switch (how) {
          case "echo": {
            const answer = exchange.respond(201, { ...TEXT, "set-cookie": ["a=1", "b=2"] });
            await eachChunk(exchange.body, { limit: 1_000_000 }, (chunk) => void answer.write(chunk));
            return void answer.end();
          }
          case "show": {
            const shown = {
              query,
              header: head.header("x-one"),
              method: head.method,
              path: head.path,
              body: String(body),
              params: String(params),
            };
            return void exchange.respond(200, { "content-type": "application/json" }).end(JSON.stringify(shown));
          }
          case "tired":
            throw fail.tired();
          case "crash":
            throw new RangeError("hunter2");
          case "mute":
            return;
          case "bad-head":
            return void exchange.respond(200, { "content-type": "a\nb" }).end();
          case "break":
            exchange.respond(200, TEXT).write("part");
            await new Promise((resolve) => setImmediate(resolve));
            throw new RangeError("hunter2");
          case "twice":
            exchange.respond(200, TEXT);
            return void exchange.respond(200, TEXT);
          case "wait":
            began.resolve();
            await isAborted;
            throw signal.reason;
          case "drip":
            exchange.respond(200, TEXT).write("part");
            await isAborted;
            throw signal.reason;
          case "flood": {
            const answer = exchange.respond(200, TEXT);
            while (answer.write(Buffer.alloc(65_536))) await new Promise((resolve) => setImmediate(resolve));
            return heldBack.resolve();
          }
          case "silent-events":
            exchange.respond(200, { "content-type": "text/event-stream" });
            return isAborted;
          case "note-late":
            exchange.respond(200, TEXT).end("whole", () => {});
            return trace.note({ outputTokens: 7 });
        }
      },
      read: ({ exchange }) => void exchange.respond(200, TEXT).end("read"),
    }),
  });
  const app = await createApp({
    name: "exchange",
    adapters: [memoryTelemetry({ telemetry }), manualClock({ clock })],
    plugins: [movers({})],
  });
  const host = await openHost(kind, app);
  return {
    telemetry,
    clock,
    began: began.promise,
    aborted: aborted.promise,
    heldBack: heldBack.promise,
    origin: host.origin,
    call: host.call,
    run: (how: string, init: RequestInit = {}) =>
      host.call(`/run?how=${how}`, {
        method: "POST",
        body: "x",
        ...init,
        headers: { ...TEXT, ...(init.headers as Record<string, string>) },
      }),
    /** Resolves when the request was told to the telemetry. */
    async told() {
      while (telemetry.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
