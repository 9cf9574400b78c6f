import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { ports } from "@portico/core";
import { describe, expect, it, onTestFinished } from "vitest";
import type { FakeUpstream } from "../../harness/fake-upstream.ts";
import { refusingPort } from "../../harness/ports.ts";
import { CUT, events, hangUp, json, never, RESET, raw, stream } from "../../harness/upstream-answers.ts";
import { RULES } from "./rules.ts";
import { CREDENTIAL, failureOf, fedBody, HEADER_SECRET, type OpenSubject, pieces, readBytes, type Subject } from "./subject.ts";

/** When either side leaves, all resources are released at once. Errors name no address and no credential. */
export function describeBreaks(open: OpenSubject): void {
  describe("abort", () => {
    const reason = new Error("the caller left");

    it("makes no connection when the signal had aborted before", async () => {
      const callers: (number | undefined)[] = [];
      const server = createServer((socket) => {
        callers.push(socket.remotePort);
        socket.on("error", () => {}).resume();
      });
      const port = await listening(server);
      const { send } = await open({ setting: { baseUrl: `http://127.0.0.1:${port}/v1` } });
      expect(await failureOf(send({}, AbortSignal.abort(reason))), RULES.signalReason).toBe(reason);
      // Connections are accepted in the order in which they come, so that one of the call's would stand before this one.
      for (let turns = 0; turns < 10; turns++) await turn();
      const own = connect(port, "127.0.0.1");
      await once(own, "connect");
      while (!callers.includes(own.localPort)) await turn();
      expect(callers).toEqual([own.localPort]);
      own.destroy();
      server.close();
    });

    it("sends nothing when it comes while the connection is made", async () => {
      const { send, upstream } = await open();
      const leaving = new AbortController();
      const sending = send({}, leaving.signal);
      leaving.abort(reason);
      expect(await failureOf(sending), RULES.signalReason).toBe(reason);
      await readBytes((await send()).body);
      expect(upstream.requests, RULES.requests(1)).toHaveLength(1);
    });

    it("ends the upstream call while the request is uploaded", async () => {
      const { send, upstream } = await open();
      const leaving = new AbortController();
      const body = fedBody("some of it");
      const sending = send({ body, length: 1_000_000 }, leaving.signal);
      await (await upstream.request()).arrived(10);
      leaving.abort(reason);
      expect(await failureOf(sending), RULES.signalReason).toBe(reason);
      await isAborted(upstream);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
    });

    it("ends the upstream call while nothing has been answered", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(never());
      const leaving = new AbortController();
      const sending = send({}, leaving.signal);
      await (await upstream.request()).bytes();
      leaving.abort(reason);
      expect(await failureOf(sending), RULES.signalReason).toBe(reason);
      await isAborted(upstream);
    });

    it("ends the upstream call in the middle of the answer, which then fails", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(events(["data: 1\n\n", ({ over }) => over]));
      const leaving = new AbortController();
      const { body } = await send({}, leaving.signal);
      const next = pieces(body);
      expect(await next()).toBe("data: 1\n\n");
      const reading = failureOf(next());
      leaving.abort(reason);
      expect(await reading, RULES.signalReason).toBe(reason);
      await isAborted(upstream);
    });

    it("ends one call and no other", async () => {
      const { send, upstream } = await open();
      upstream.answerAll(never());
      const leaving = new AbortController();
      const leavers = [1, 2, 3].map(() => failureOf(send({}, leaving.signal)));
      const staying = send();
      await upstream.request(4);
      upstream.answerAll(json(200, {}));
      leaving.abort(reason);
      expect(await Promise.all(leavers)).toEqual([reason, reason, reason]);
      expect(upstream.openExchanges).toBeGreaterThan(0);
      await readBytes((await send()).body);
      const stayed = failureOf(staying);
      await upstream.close();
      expect(await stayed, RULES.fails("ModelUnreachable")).toBeInstanceOf(ports.ModelUnreachable);
    });
  });

  describe("leaving an answer", () => {
    it("ends the upstream call", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(events(["data: 1\n\n", ({ over }) => over]));
      const { body } = await send();
      await pieces(body)();
      body.destroy();
      await isAborted(upstream);
    });
  });

  describe("an upstream that breaks", () => {
    it("is unreachable when it refuses the connection", async () => {
      const refusing = await refusingPort();
      onTestFinished(() => refusing[Symbol.asyncDispose]());
      const { send } = await open({ setting: { baseUrl: `http://127.0.0.1:${refusing.port}/v1` } });
      const body = fedBody("{");
      const error = await failureOf(send({ body }));
      isDiscreet(error, ports.ModelUnreachable);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
    });

    it.each([
      ["closes the connection", hangUp(CUT)],
      ["resets the connection", hangUp(RESET)],
      ["says what is no HTTP", raw(`SSH-2.0-${CREDENTIAL}\r\n\r\n`)],
    ])("is unreachable when it %s before the head", async (_name, answer) => {
      const { send, upstream } = await open();
      upstream.answerNext(answer);
      isDiscreet(await failureOf(send()), ports.ModelUnreachable, upstream);
    });

    it("is unreachable when it breaks while the request is uploaded", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(async (exchange) => {
        await exchange.request.arrived(10);
        exchange.socket.resetAndDestroy();
      });
      const body = fedBody("some of it");
      isDiscreet(await failureOf(send({ body })), ports.ModelUnreachable, upstream);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
    });

    it.each([
      ["a stream that is closed", stream(["data: 1\n\n", CUT])],
      ["a stream that is reset", stream(["data: 1\n\n", ({ request }) => request.bytes(), RESET])],
      ["a body that is shorter than its length", raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ndata: 1\n\n")],
      ["a chunk that is none", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\nzz\r\n")],
    ])("fails the answer, which is never taken for whole: %s", async (_name, answer) => {
      const { send, upstream } = await open();
      upstream.answerNext(answer);
      const sending = send();
      const error = await failureOf(sending.then(({ body }) => readBytes(body)));
      isDiscreet(error, ports.ModelUnreachable, upstream);
    });

    it("is asked again over a new connection", async () => {
      const { send, upstream } = await open();
      upstream.answerNext(hangUp(), stream(["data: 1\n\n", CUT]));
      await failureOf(send());
      await failureOf(send().then(({ body }) => readBytes(body)));
      expect((await send()).status, RULES.servesOn).toBe(200);
    });
  });

  describe("a request that breaks", () => {
    it("ends the call, and no upstream takes it for whole", async () => {
      const { send, upstream } = await open();
      const body = fedBody('{"model":"echo-large"}');
      const sending = failureOf(send({ body }));
      const request = await upstream.request();
      await request.arrived(10);
      body.destroy(new Error("the caller's connection was cut"));
      expect(await sending, RULES.fails("Error")).toBeInstanceOf(Error);
      await isAborted(upstream);
      await expect(request.bytes()).rejects.toThrow();
    });

    it.each([
      ["shorter", '{"model":1}', 12],
      ["longer", '{"model":1}x', 11],
    ])("fails when the body is %s than the length that was told", async (_name, text, length) => {
      const { send, upstream } = await open();
      const body = fedBody(text);
      body.push(null);
      expect(await failureOf(send({ body, length })), RULES.fails("ModelUnreachable")).toBeInstanceOf(ports.ModelUnreachable);
      await upstream.quiet();
      for (const request of upstream.requests) await expect(request.bytes()).rejects.toThrow();
    });
  });

  describe("close", () => {
    it("leaves no connection open, not even of calls that still wait", async () => {
      const { send, upstream, close } = await open();
      await readBytes((await send()).body);
      upstream.answerNext(never(), events(["data: 1\n\n", ({ over }) => over]));
      const waiting = failureOf(send());
      await upstream.request(2);
      const { body } = await send();
      const reading = failureOf(readBytes(body));
      await close();
      isDiscreet(await waiting, ports.ModelUnreachable, upstream);
      isDiscreet(await reading, ports.ModelUnreachable, upstream);
      await upstream.deserted();
    });

    it("makes every later call fail", async () => {
      const { send, upstream, close } = await open();
      await close();
      isDiscreet(await failureOf(send()), ports.ModelUnreachable, upstream);
      expect(upstream.requests, RULES.requests(0)).toHaveLength(0);
    });
  });
}

/** The call's exchange was ended by this side, and its connection is gone. */
async function isAborted(upstream: FakeUpstream): Promise<void> {
  expect(await (await upstream.request()).outcome, RULES.upstreamEnded).toBe("aborted");
  await upstream.deserted();
}

/** An error of that class which tells neither where the upstream is nor with what it was asked. */
export function isDiscreet(error: unknown, kind: new (message: string) => Error, upstream?: Subject["upstream"]): void {
  expect(error, RULES.fails(kind.name)).toBeInstanceOf(kind);
  const { message } = error as Error;
  const { host, hostname } = new URL(upstream?.baseUrl ?? "http://127.0.0.1");
  for (const secret of [CREDENTIAL, HEADER_SECRET, host, hostname]) expect(message, RULES.discreet).not.toContain(secret);
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
