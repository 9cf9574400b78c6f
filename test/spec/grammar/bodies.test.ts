import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { PassThrough, Readable } from "node:stream";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { BodyTooLarge, createApp, defineContract, definePlugin, eachChunk, readBody, reply } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type HostKind, openHost } from "../../harness/hosts.ts";

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
  { save: { method: "POST", path: "/save", summary: "", body: v.unknown(), bodyLimit: 100, success: reply.empty() } },
);
const saver = definePlugin({ name: "saver", config: v.strictObject({}), needs: {}, contract, setup: () => ({ save() {} }) });
const JSON_TYPE = { "content-type": "application/json" };

describe("a body that is cut", () => {
  it("over a network means that the caller left: no answer is sent and no error is logged", async () => {
    await using service = await open("node");
    const socket = await begin(service.origin!, '{"n":');
    await service.reading();
    socket.stream.destroy();
    await service.told();
    expect(service.telemetry.requests).toMatchObject([{ status: 499 }]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("in process is told to the caller that broke it", async () => {
    await using service = await open("fetch");
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('{"n":')),
      pull: (controller) => controller.error(new Error("broken")),
    });
    const response = await service.call("/save", {
      method: "POST",
      headers: JSON_TYPE,
      body: broken,
      duplex: "half",
    } as RequestInit);
    expect([response.status, await response.json()]).toEqual([400, { error: "invalid_request" }]);
    expect(service.telemetry.lines).toEqual([]);
  });
});

describe.each(["node", "fetch"] as const)("a body with a Content-Encoding on a %s host", (host) => {
  it.each(["gzip", "br", "deflate, gzip", "x-own"])("is refused with 415 and the reason: %s", async (encoding) => {
    await using service = await open(host);
    const response = await service.call("/save", {
      method: "POST",
      headers: { ...JSON_TYPE, "content-encoding": encoding },
      body: gzipSync("{}"),
    });
    expect([response.status, response.headers.get("accept-encoding"), await response.json()]).toEqual([
      415,
      "identity",
      { error: "unsupported_media_type" },
    ]);
  });

  it("is read with `identity`, which is no encoding", async () => {
    await using service = await open(host);
    const headers = { ...JSON_TYPE, "content-encoding": "Identity" };
    expect((await service.call("/save", { method: "POST", headers, body: "{}" })).status).toBe(204);
  });
});

describe("a body that is refused", () => {
  it("in process is cancelled after two seconds", async () => {
    await using service = await open("fetch");
    const cancelled = Promise.withResolvers<void>();
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(Buffer.alloc(64, " ")),
      cancel: () => cancelled.resolve(),
    });
    const response = await service.call("/save", {
      method: "POST",
      headers: JSON_TYPE,
      body: endless,
      duplex: "half",
    } as RequestInit);
    expect(response.status).toBe(413);
    await service.clock.advance(2_000);
    await cancelled.promise;
  });
});

describe("a body that stops arriving", () => {
  it("is refused with 408 after a minute of silence", async () => {
    await using service = await open("node");
    const socket = await begin(service.origin!, '{"n":');
    await service.reading();
    await service.clock.advance(59_999);
    expect(socket.text()).toBe("");
    await service.clock.advance(1);
    while (!socket.text().includes("request_timeout")) await once(socket.stream, "data");
    expect(socket.text()).toContain("HTTP/1.1 408");
    expect(socket.text()).toContain('{"error":"request_timeout"}');
    socket.stream.destroy();
  });

  it("is not silent while it drips", async () => {
    const clock = createManualClock();
    const body = new PassThrough();
    const reading = readBody(body, { limit: 100, clock });
    for (const letter of "slow") {
      await clock.advance(59_000);
      body.write(letter);
    }
    await clock.advance(59_000);
    body.end();
    expect((await reading).toString()).toBe("slow");
  });

  it("is refused where it drips into memory for longer than five minutes", async () => {
    const clock = createManualClock();
    const body = new PassThrough();
    const reading = readBody(body, { limit: 100, clock });
    const refused = expect(reading).rejects.toMatchObject({ name: "BodySilent" });
    for (let half = 0; half < 10; half++) {
      body.write("x");
      await clock.advance(30_000);
    }
    await refused;
  });

  it("drips on for as long as it takes where nothing of it is held", async () => {
    const clock = createManualClock();
    const body = new PassThrough();
    let taken = 0;
    const reading = eachChunk(body, { limit: 100, clock }, () => void taken++);
    for (let half = 0; half < 20; half++) {
      body.write("x");
      await clock.advance(30_000);
    }
    body.end();
    await reading;
    expect(taken).toBe(20);
  });

  it("is not silent while its reader is busy", async () => {
    const clock = createManualClock();
    const body = new PassThrough();
    const gate = Promise.withResolvers<void>();
    const taken: string[] = [];
    const reading = eachChunk(body, { limit: 100, clock }, async (chunk) => {
      taken.push(chunk.toString());
      await gate.promise;
    });
    body.write("one");
    await clock.jump(600_000);
    body.end("two");
    gate.resolve();
    await reading;
    expect(taken).toEqual(["one", "two"]);
  });
});

describe("eachChunk", () => {
  const small = { limit: 10 };

  it("holds the stream back until a chunk is taken", async () => {
    const body = new PassThrough({ highWaterMark: 4 });
    const gate = Promise.withResolvers<void>();
    let taken = 0;
    const reading = eachChunk(body, small, async () => {
      taken++;
      await gate.promise;
    });
    body.write("ab");
    body.write("cd");
    await new Promise((resolve) => setImmediate(resolve));
    expect([taken, body.isPaused()]).toEqual([1, true]);
    gate.resolve();
    body.end();
    await reading;
    expect(taken).toBe(2);
  });

  it("leaves a refused stream paused and whole, so that an answer can still be sent", async () => {
    const body = new PassThrough();
    const reading = eachChunk(body, small, () => {});
    body.write("x".repeat(11));
    await expect(reading).rejects.toBeInstanceOf(BodyTooLarge);
    expect([body.isPaused(), body.destroyed]).toEqual([true, false]);
  });

  it("rejects with what its reader throws, at once or later", async () => {
    const once = eachChunk(Readable.from([Buffer.from("a")]), small, () => {
      throw new RangeError("now");
    });
    await expect(once).rejects.toThrow("now");
    const later = eachChunk(Readable.from([Buffer.from("a")]), small, () => Promise.reject(new RangeError("later")));
    await expect(later).rejects.toThrow("later");
  });

  it.each([
    ["was destroyed before", (body: PassThrough) => body.destroy(), "BodyCut"],
    ["is destroyed while it is read", (body: PassThrough) => void setImmediate(() => body.destroy()), "BodyCut"],
    ["breaks while it is read", (body: PassThrough) => void setImmediate(() => body.destroy(new Error("reset"))), "BodyCut"],
  ])("rejects a stream that %s", async (_what, spoil, name) => {
    const body = new PassThrough();
    spoil(body);
    await expect(readBody(body, small)).rejects.toMatchObject({ name });
  });

  it("rejects a stream that was already read, instead of waiting forever", async () => {
    const body = Readable.from([Buffer.from("a")]);
    await readBody(body, small);
    await expect(readBody(body, small)).rejects.toMatchObject({ name: "BodyAlreadyRead" });
  });
});

async function begin(origin: string, beginning: string): Promise<{ stream: Socket; text(): string }> {
  const stream = connect(Number(new URL(origin).port), "127.0.0.1");
  stream.on("error", () => {});
  const received: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => received.push(chunk));
  stream.write(`POST /save HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n${beginning}`);
  return { stream, text: () => Buffer.concat(received).toString() };
}

async function open(kind: HostKind) {
  const telemetry = createMemoryTelemetry();
  const watched = createManualClock();
  const timers: number[] = [];
  const clock = {
    ...watched,
    after(ms: number, run: () => void) {
      timers.push(ms);
      return watched.after(ms, run);
    },
  };
  const app = await createApp({
    name: "bodies",
    adapters: [memoryTelemetry({ telemetry }), manualClock({ clock })],
    plugins: [saver({})],
  });
  const host = await openHost(kind, app);
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    telemetry,
    clock,
    origin: host.origin,
    call: host.call,
    told: () => until(() => telemetry.requests.length > 0),
    /** Resolves when the body is being waited for. */
    reading: () => until(() => timers.length > 0),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await app.close();
    },
  };
}
