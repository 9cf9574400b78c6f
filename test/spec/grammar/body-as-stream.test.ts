import { once } from "node:events";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import {
  BodyCut,
  bearerToken,
  createApp,
  defineContract,
  defineErrors,
  definePlugin,
  reply,
  type StreamedBody,
} from "@portico/core";
import { createClient } from "@portico/core/client";
import { toNodeHandler } from "@portico/core/node";
import { toOpenAPI } from "@portico/core/openapi";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, hostKinds, listen, openHost } from "../../harness/hosts.ts";
import { rawCall, statusOf } from "../../harness/raw-call.ts";

const LIMIT = 1_000_000;
const errors = defineErrors({ tired: { status: 503 }, denied: { status: 401 }, too_big: { status: 413 } });
const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }), faults: { body_too_large: errors.too_big } },
  {
    take: {
      method: "POST",
      path: "/take",
      summary: "",
      accepts: ["multipart/form-data"],
      bodyAs: "stream",
      bodyLimit: LIMIT,
      query: v.strictObject({ how: v.optional(v.string(), "all") }),
      success: reply.json(v.object({ size: v.number(), type: v.string() }), 201),
      errors,
    },
    guarded: {
      method: "POST",
      path: "/guarded",
      summary: "",
      auth: "key",
      accepts: ["multipart/form-data"],
      bodyAs: "stream",
      bodyLimit: 10,
      success: reply.empty(),
    },
    replied: {
      method: "POST",
      path: "/replied",
      summary: "",
      accepts: ["multipart/form-data"],
      bodyAs: "stream",
      success: reply.bytes(),
    },
  },
);
const FORM = { "content-type": "multipart/form-data; boundary=b" };

describe.each(hostKinds)("a body as a stream on a %s host", (kind) => {
  it("has every byte and its content type with its parameters", async () => {
    await using service = await open(kind);
    const answer = await service.take("all", { body: "x".repeat(LIMIT) });
    expect([answer.status, await answer.json()]).toEqual([201, { size: LIMIT, type: FORM["content-type"] }]);
  });

  it("may be empty", async () => {
    await using service = await open(kind);
    const answer = await service.take("all");
    expect([answer.status, await answer.json()]).toEqual([201, { size: 0, type: FORM["content-type"] }]);
  });

  it("is there on routes that answer with a Response, too", async () => {
    await using service = await open(kind);
    const answer = await service.call("/replied", { method: "POST", headers: FORM, body: "four" });
    expect(await answer.text()).toBe("4");
  });

  it("begins to arrive before it has arrived", async () => {
    await using service = await open(kind);
    const body = sending();
    const answer = service.take("all", body.init);
    body.send("one");
    await service.arrived(3);
    body.send("two");
    body.end();
    expect(await (await answer).json()).toMatchObject({ size: 6 });
  });

  it("is read after the checks of credential, method, media type and declared length", async () => {
    await using service = await open(kind);
    const refuse = async (path: string, init: RequestInit) => (await service.call(path, init)).status;
    const body = "x".repeat(11);
    expect(await refuse("/guarded", { method: "POST", body, headers: { "content-type": "text/plain" } })).toBe(401);
    const key = { authorization: "Bearer k" };
    expect(await refuse("/guarded", { method: "PUT", body, headers: { ...key, "content-type": "text/plain" } })).toBe(405);
    expect(await refuse("/guarded", { method: "POST", body, headers: { ...key, "content-type": "text/plain" } })).toBe(415);
    expect(await refuse("/guarded", { method: "POST", body: Buffer.from(body), headers: key })).toBe(415);
    expect(await refuse("/guarded", { method: "POST", body, headers: { ...key, ...FORM, "content-length": "11" } })).toBe(413);
    expect(service.handled()).toBe(0);
  });

  it("breaks one byte beyond its limit where no length was declared, and is refused in the area's words", async () => {
    await using service = await open(kind);
    const answer = await service.take("all", streaming("x".repeat(LIMIT), "x"));
    expect([answer.status, await answer.json()]).toEqual([413, { error: "too_big" }]);
    expect(service.broken()).toMatchObject({ name: "BodyTooLarge" });
    expect(service.telemetry.lines).toEqual([]);
  });

  it("passes with its limit on the byte where no length was declared", async () => {
    await using service = await open(kind);
    expect((await service.take("all", streaming("x".repeat(LIMIT - 1), "x"))).status).toBe(201);
  });

  it("breaks after a minute of silence: 408", async () => {
    await using service = await open(kind);
    const body = sending();
    const answer = service.take("all", body.init);
    body.send("one");
    await service.arrived(3);
    await service.clock.advance(59_999);
    body.send("two");
    await service.arrived(6);
    await service.clock.advance(59_999);
    expect(service.broken()).toBeUndefined();
    await service.clock.advance(1);
    expect((await answer).status).toBe(408);
    body.end();
  });

  it("is not silent while its reader holds it back", async () => {
    await using service = await open(kind);
    const body = sending();
    const answer = service.take("hold", body.init);
    // More than there is room for: the caller waits for us.
    for (let count = 0; count < 4; count++) body.send("x".repeat(100_000));
    await service.holding;
    await service.clock.jump(600_000);
    service.goOn();
    body.end();
    expect(await (await answer).json()).toMatchObject({ size: 400_000 });
  });

  it.each([
    ["throws", "tired", 503],
    ["crashes", "crash", 500],
    ["answers", "early", 201],
  ])("that is not read by a handler that %s keeps nobody waiting", async (_what, how, status) => {
    await using service = await open(kind);
    const answer = await service.take(how, streaming("x".repeat(100_000), "x".repeat(100_000)));
    expect(answer.status).toBe(status);
    await answer.text();
  });

  it("is closed when its handler is done", async () => {
    await using service = await open(kind);
    const body = sending();
    body.send("one");
    const answer = await service.take("keep", body.init);
    expect(answer.status).toBe(201);
    expect(service.kept()!.destroyed).toBe(true);
    body.end();
  });
});

describe("a body as a stream whose caller leaves", () => {
  it.each(["all", "wait", "ignore"])("over a network breaks; no answer is sent and no error is logged (%s)", async (how) => {
    await using service = await open("node");
    const socket = connect(Number(new URL(service.origin!).port), "127.0.0.1");
    socket.write(
      `POST /take?how=${how} HTTP/1.1\r\nhost: x\r\ncontent-type: ${FORM["content-type"]}\r\ncontent-length: 9\r\n\r\nsix`,
    );
    await service.begun;
    socket.destroy();
    await service.told();
    if (how !== "ignore") expect(service.broken()).toBeInstanceOf(BodyCut);
    expect(service.telemetry.requests).toMatchObject([{ status: 499 }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("in process breaks with the request's signal", async () => {
    await using service = await open("fetch");
    const leaving = new AbortController();
    const answer = service.take("all", { ...sending().init, signal: leaving.signal });
    await service.begun;
    leaving.abort();
    expect((await answer).status).toBe(499);
    expect(service.broken()).toBeInstanceOf(BodyCut);
  });

  it("in process is told when the body breaks", async () => {
    await using service = await open("fetch");
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from("part")),
      pull: (controller) => controller.error(new Error("broken")),
    });
    const answer = await service.take("all", { body, duplex: "half" } as RequestInit);
    expect([answer.status, await answer.json()]).toEqual([400, { error: "invalid_request" }]);
    expect(service.telemetry.lines).toEqual([]);
  });
});

describe("the rest of a body that its handler left unread", () => {
  const begin = async (service: Awaited<ReturnType<typeof open>>, how: string, more = "") => {
    const socket = connect(Number(new URL(service.origin!).port), "127.0.0.1");
    const received: Buffer[] = [];
    socket.on("error", () => {}).on("data", (chunk: Buffer) => received.push(chunk));
    const head = `POST /take?how=${how} HTTP/1.1\r\nhost: x\r\n${more}content-type: ${FORM["content-type"]}\r\ncontent-length: 900000\r\n\r\n`;
    socket.write(`${head}the beginning`);
    await once(socket, "data");
    return { socket, text: () => Buffer.concat(received).toString() };
  };

  it.each([
    ["tired", 503],
    ["early", 201],
  ])("may be sent to its end (%s)", async (how, status) => {
    await using service = await open("node");
    const { socket, text } = await begin(service, how);
    expect(statusOf(text())).toBe(status);
    socket.write("x".repeat(900_000 - "the beginning".length));
    socket.write("POST /take HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    while (!text().includes("HTTP/1.1 415")) await once(socket, "data");
    socket.destroy();
  });

  it.each([
    ["tired", ""],
    ["early", ""],
    ["tired", "origin: http://page.example\r\n"],
    ["early", "origin: http://page.example\r\n"],
  ])("is cut when it goes on for two seconds (%s, %j)", async (how, more) => {
    await using service = await open("node", { allowedOrigins: ["http://page.example"] });
    const { socket } = await begin(service, how, more);
    const closed = once(socket, "close");
    await service.clock.advance(1_999);
    expect(socket.destroyed).toBe(false);
    await service.clock.advance(1);
    await closed;
  });

  it("in process is cancelled after two seconds", async () => {
    await using service = await open("fetch");
    for (const how of ["tired", "early"]) {
      const cancelled = Promise.withResolvers<void>();
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(Buffer.alloc(64)),
        cancel: () => cancelled.resolve(),
      });
      await service.take(how, { body, duplex: "half" } as RequestInit);
      await service.clock.advance(2_000);
      await cancelled.promise;
    }
  });
});

it("a body that a host's own parser has already read is not treated as an empty body", async () => {
  await using service = await open("node");
  const handle = toNodeHandler(service.surface);
  await using host = await listen(async (request, response) => {
    await buffer(request);
    await handle(request, response);
  });
  const answer = await rawCall(
    host.origin,
    `POST /take HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: ${FORM["content-type"]}\r\ncontent-length: 3\r\n\r\nabc`,
  );
  expect(statusOf(answer)).toBe(500);
  expect(service.telemetry.lines).toMatchObject([{ cause: { name: "BodyAlreadyRead" } }]);
});

it("a body as a stream is described by its media types and its faults", () => {
  const { paths } = toOpenAPI({ title: "Takers", version: "1" }, { takers: contract });
  const { requestBody, responses } = paths["/take"]!["post"]!;
  expect(requestBody).toEqual({ required: true, content: { "multipart/form-data": {} } });
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(["201", "400", "408", "413", "415"]));
});

it("a body as a stream is sent by a client as it is given", async () => {
  await using service = await open("fetch");
  const client = createClient(contract, { baseURL: "http://test", fetch: service.surface.fetch });
  const form = new FormData();
  form.append("file", new File(["abc"], "a.txt"));
  const { size, type } = await client.take({ body: form });
  expect([size > 3, type]).toEqual([true, expect.stringMatching(/^multipart\/form-data; boundary=/)]);
});

/** A body whose length is not declared. */
function streaming(...chunks: readonly string[]): RequestInit {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
      controller.close();
    },
  });
  return { body, duplex: "half" } as RequestInit;
}

/** A body that is sent piece by piece. */
function sending() {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
  });
  return {
    init: { body, duplex: "half" } as RequestInit,
    send: (text: string) => controller.enqueue(Buffer.from(text)),
    end() {
      try {
        controller.close();
      } catch {
        // The reader gave it up before.
      }
    },
  };
}

async function open(kind: HostKind, options?: { readonly allowedOrigins: readonly string[] }) {
  const telemetry = createMemoryTelemetry();
  const clock = createManualClock();
  const begun = Promise.withResolvers<void>();
  const holding = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  let arrived = 0;
  let handled = 0;
  let broken: unknown;
  let kept: StreamedBody["stream"] | undefined;
  const takers = definePlugin({
    name: "takers",
    config: v.strictObject({}),
    needs: {},
    contract,
    guards: () => ({
      key(head) {
        if (bearerToken(head) !== "k") throw errors.denied();
      },
    }),
    setup: () => ({
      async take({ body: { stream, headers }, query: { how }, fail, signal }) {
        begun.resolve();
        if (how === "ignore") {
          await once(signal, "abort");
          throw signal.reason;
        }
        stream.on("error", (error) => (broken = error));
        const type = headers.contentType;
        switch (how) {
          case "tired":
            throw fail.tired();
          case "crash":
            throw new RangeError("hunter2");
          case "early":
            return { size: 0, type };
          case "keep":
            kept = stream;
            return { size: 0, type };
          case "wait":
            await once(stream, "close");
            throw broken;
        }
        let size = 0;
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          size += chunk.length;
          arrived = size;
          if (how !== "hold" || size > chunk.length) continue;
          while (stream.readableLength < stream.readableHighWaterMark) await nextTurn();
          holding.resolve();
          await goOn.promise;
        }
        return { size, type };
      },
      guarded() {
        handled++;
      },
      async replied({ body }) {
        return new Response(String((await buffer(body.stream)).length));
      },
    }),
  });
  const app = await createApp({
    name: "takers",
    adapters: [memoryTelemetry({ telemetry }), manualClock({ clock })],
    plugins: [takers({})],
    ...(options && { surfaces: { agent: options } }),
  });
  const host = await openHost(kind, app);
  const until = async (holds: () => boolean) => {
    while (!holds()) await nextTurn();
  };
  return {
    telemetry,
    clock,
    origin: host.origin,
    surface: app.surface("agent"),
    call: host.call,
    take: (how: string, init?: RequestInit) => host.call(`/take?how=${how}`, { method: "POST", headers: FORM, ...init }),
    begun: begun.promise,
    holding: holding.promise,
    goOn: goOn.resolve,
    handled: () => handled,
    broken: () => broken,
    kept: () => kept,
    arrived: (size: number) => until(() => arrived >= size),
    told: () => until(() => telemetry.requests.length > 0),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
