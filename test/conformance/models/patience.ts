import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import { createGate } from "../../harness/gate.ts";
import { after, afterInterim, events, json, never, slowReader, stream } from "../../harness/upstream-answers.ts";
import { isDiscreet } from "./breaks.ts";
import { RULES } from "./rules.ts";
import {
  countedBody,
  failureOf,
  fedBody,
  type OpenSubject,
  pieces,
  readBytes,
  standstill,
  TIMEOUTS,
  watched,
} from "./subject.ts";

const MIB = 1024 * 1024;
const PART_MS = TIMEOUTS.headersMs * 0.7;
const HOUR_MS = 3_600_000;

/** How long a provider waits, for whom, and for whom not. */
export function describePatience(open: OpenSubject): void {
  describe("headersMs", () => {
    it("ends a call whose answer has not begun that long after its last byte", async () => {
      const { send, upstream, pass } = await open();
      upstream.answerNext(never());
      const sending = send();
      const failure = failureOf(sending);
      const state = watched(sending);
      const request = await upstream.request();
      await request.bytes();
      await pass(PART_MS);
      expect(state(), RULES.stillOpen).toBe("open");
      await pass(PART_MS);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
      expect(await request.outcome, RULES.upstreamEnded).toBe("aborted");
    });

    it("ends with the head", async () => {
      const { send, upstream, pass } = await open({
        setting: { timeouts: { ...TIMEOUTS, idleMs: HOUR_MS } },
      });
      const rest = createGate();
      upstream.answerNext(events([rest.opened, "data: 1\n\n"]));
      const { body } = await send();
      await pass(TIMEOUTS.headersMs * 3);
      rest.open();
      expect((await readBytes(body)).toString("utf8")).toBe("data: 1\n\n");
    });

    it("is not over with an interim answer", async () => {
      const { send, upstream, pass } = await open();
      upstream.answerNext(afterInterim(never()));
      const failure = failureOf(send());
      await (await upstream.request()).bytes();
      await pass(TIMEOUTS.headersMs * 2);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
    });

    it("does not run while a request arrives slowly, however long its sender pauses", async () => {
      const { send, upstream, pass } = await open();
      upstream.answerNext(async (exchange) => json(200, await exchange.request.text())(exchange));
      const body = fedBody("1");
      const sending = send({ body });
      const failure = failureOf(sending);
      const request = await upstream.request();
      await request.arrived(1);
      await pass(PART_MS);
      body.push("2");
      await request.arrived(2);
      await pass(PART_MS);
      body.push("3");
      await request.arrived(3);
      await pass(TIMEOUTS.headersMs * 5);
      body.push(null);
      expect(await failure).toBeUndefined();
      expect((await readBytes((await sending).body)).toString("utf8")).toBe("123");
    });

    it("runs again once a slow request is whole", async () => {
      const { send, upstream, pass } = await open();
      upstream.answerNext(never());
      const body = fedBody("1");
      const failure = failureOf(send({ body }));
      const request = await upstream.request();
      await request.arrived(1);
      await pass(TIMEOUTS.headersMs * 5);
      body.push(null);
      await request.bytes();
      await pass(TIMEOUTS.headersMs * 2);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
    });

    it("runs while an upstream does not take the request in", async () => {
      const { send, upstream, pass } = await open({ keepBodies: false });
      upstream.answerNext(slowReader(new Promise(() => {}), never()));
      const { body, taken } = countedBody(200 * MIB);
      const failure = failureOf(send({ body }));
      await upstream.request();
      await standstill(taken);
      await pass(TIMEOUTS.headersMs * 2);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
    });
  });

  describe("idleMs", () => {
    it("fails an answer that is silent that long, counted from its last byte", async () => {
      const { send, upstream, pass } = await open();
      const second = createGate();
      upstream.answerNext(events(["data: 1\n\n", second.opened, "data: 2\n\n", ({ over }) => over]));
      const { body } = await send();
      const next = pieces(body);
      expect(await next()).toBe("data: 1\n\n");
      await pass(PART_MS);
      second.open();
      expect(await next()).toBe("data: 2\n\n");
      const reading = next();
      const failure = failureOf(reading);
      const state = watched(reading);
      await pass(PART_MS);
      expect(state(), RULES.stillOpen).toBe("open");
      await pass(PART_MS);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
      expect(await (await upstream.request()).outcome, RULES.upstreamEnded).toBe("aborted");
    });

    it("counts from the head, too", async () => {
      const { send, upstream, pass } = await open();
      upstream.answerNext(stream([({ over }) => over]));
      const { body } = await send();
      const failure = failureOf(readBytes(body));
      await pass(TIMEOUTS.idleMs * 2);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
    });

    it("does not run while the reader pauses, and runs again afterwards", async () => {
      const { send, upstream, pass } = await open();
      upstream.answerNext(stream([Buffer.alloc(8 * MIB), ({ over }) => over]));
      const { body } = await send();
      await standstill(() => body.readableLength);
      await pass(TIMEOUTS.idleMs * 5);
      const next = chunksOf(body);
      for (let read = 0; read < 8 * MIB;) read += (await next()).length;
      const failure = failureOf(next());
      await pass(TIMEOUTS.idleMs * 2);
      isDiscreet(await failure, ports.ModelTimeout, upstream);
    });

    it("counts from the moment at which the reader goes on", async () => {
      const { send, upstream, pass } = await open();
      // Little enough that nothing of it is left to come when the reader goes on, and enough to make it wait.
      const little = 80 * 1024;
      const rest = createGate();
      upstream.answerNext(stream([Buffer.alloc(little), rest.opened, "the rest"]));
      const { body } = await send();
      await standstill(() => body.readableLength);
      await pass(PART_MS);
      const next = chunksOf(body);
      for (let read = 0; read < little;) read += (await next()).length;
      const reading = next();
      await pass(PART_MS);
      rest.open();
      expect(String(await reading)).toBe("the rest");
    });
  });

  it("waits for an upstream that takes as long as it may", async () => {
    const { send, upstream, pass } = await open({
      setting: {
        timeouts: { ...TIMEOUTS, headersMs: HOUR_MS, idleMs: HOUR_MS },
      },
    });
    const [head, rest] = [createGate(), createGate()];
    upstream.answerNext(after(head.opened, events(["data: 1\n\n", rest.opened, "data: 2\n\n"])));
    const sending = send();
    await (await upstream.request()).bytes();
    await pass(HOUR_MS * 0.9);
    head.open();
    const { body } = await sending;
    const next = pieces(body);
    expect(await next()).toBe("data: 1\n\n");
    await pass(HOUR_MS * 0.9);
    rest.open();
    expect(await next()).toBe("data: 2\n\n");
    expect(await next()).toBe("");
  });
}

/** How long a provider waits for a connection. */
export function describeConnecting(open: OpenSubject): void {
  describe("connectMs", () => {
    it("ends a call that gets no connection in that time", async () => {
      // Accepts the connection and never answers the TLS greeting: as good as none, and the same on every machine.
      const sockets: Socket[] = [];
      const silent = createServer((socket) => void sockets.push(socket.on("error", () => {}).resume()));
      silent.listen(0, "127.0.0.1");
      await once(silent, "listening");
      const { port } = silent.address() as AddressInfo;
      const { send, pass } = await open({
        setting: {
          baseUrl: `https://127.0.0.1:${port}/v1`,
          timeouts: { ...TIMEOUTS, connectMs: 100, headersMs: HOUR_MS },
        },
      });
      const body = fedBody("{");
      const failure = failureOf(send({ body }));
      await once(silent, "connection");
      await pass(200);
      isDiscreet(await failure, ports.ModelTimeout);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
  });
}

/** The next chunk each time; an empty one at the end. */
function chunksOf(body: Readable): () => Promise<Buffer> {
  const iterator = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  return async () => (await iterator.next()).value ?? Buffer.alloc(0);
}
