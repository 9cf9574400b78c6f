import { createServer } from "node:net";
import { createManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS, CONVERTED, expectError, SAME } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Reply } from "../../harness/http-call.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { CUT, events, hangUp, json, never, RESET, raw, stream } from "../../harness/upstream-answers.ts";

const EVENTS = { messages: messagesEvents("one two"), "chat-completions": chatEvents("one two") };

describe.each(["node", "fetch"] as const)("time-outs and broken upstreams (open points 2; 7.1) on a %s host", (host) => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request, assertBrokenStream } = CALLERS[caller];
    const all = EVENTS[protocol];
    /** Up to and with the first word. */
    const begun = all.slice(0, all.findIndex((event) => event.includes("one")) + 1);
    const isConverting = caller !== protocol;

    it.each([false, true])(
      "an upstream that never answers (stream: %s) is 504 after headersMs, and its call is aborted",
      async (isStream) => {
        await using upstream = await startFakeUpstream();
        upstream.answerAll(never());
        const clock = createManualClock();
        await using proxy = await startProxy({
          host,
          clock,
          providers: [{ protocol, upstream, timeouts: { headersMs: 90_000 } }],
        });
        let reply: Reply | undefined;
        const answering = proxy.post(path, request("hello", { stream: isStream })).then((arrived) => (reply = arrived));
        const call = await upstream.request();
        await call.sha256();
        await clock.advance(89_000);
        expect(reply, "before headersMs").toBeUndefined();
        await clock.advance(2_000);
        const error = await expectError(await answering, 504, caller);
        if (caller === "messages") expect(error.type).toBe("timeout_error");
        expect(await call.outcome).toBe("aborted");
      },
    );

    it("silence inside a stream for idleMs ends it with the protocol's own error event and no normal end", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(events([...begun, new Promise(() => {})]));
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream, timeouts: { idleMs: 60_000 } }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      let text = await readUntil(reply, "one");
      await clock.advance(59_000);
      await clock.advance(2_000);
      text += await reply.text();
      assertBrokenStream(text);
      expect(text).toMatch(/timeout|in time|stopped answering/i);
      expect(await (await upstream.request()).outcome).toBe("aborted");
    });

    it("each event restarts idleMs", async () => {
      await using upstream = await startFakeUpstream();
      const steps = all.map((event) => ({ event, gate: Promise.withResolvers<void>() }));
      upstream.answerNext(events(steps.flatMap(({ event, gate }) => [gate.promise, event])));
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream, timeouts: { idleMs: 60_000 } }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      let text = "";
      for (const { event, gate } of steps) {
        await clock.advance(50_000);
        gate.resolve();
        // Only what shows up on the caller's side proves that the event came through before more time passes.
        const word = /one|two/.exec(event)?.[0];
        if (word !== undefined) text += await readUntil(reply, word);
      }
      text += await reply.text();
      CALLERS[caller].assertStream(text);
      expect(text).not.toMatch(/"error"/);
    });

    it.each([
      ["cut", CUT],
      ["reset", RESET],
    ] as const)("a stream that is %s in the middle ends with the error event after the bytes so far", async (_name, how) => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(events([...begun, how]));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      expect(reply.status).toBe(200);
      const text = await reply.text();
      // A reset may overtake what was sent before it.
      if (how === CUT && !isConverting) expect(text.startsWith(begun.join(""))).toBe(true);
      if (how === CUT) assertBrokenStream(text);
      expect(text).not.toMatch(/message_stop|\[DONE\]/);
      expect(text).toContain("error");
    });

    it("a stream that is cut in the middle of an event ends with an error event of its own", async () => {
      await using upstream = await startFakeUpstream();
      const half = (all[begun.length] ?? "").slice(0, 20);
      upstream.answerNext(events([...begun, half, CUT]));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const text = await (await proxy.post(path, request("hello", { stream: true }))).text();
      const last = text.trimEnd().split("\n\n").at(-1) ?? "";
      const data = /^data: ?(.*)$/m.exec(last)?.[1] ?? "";
      expect(JSON.parse(data)).toMatchObject({ error: { message: expect.stringMatching(/./) } });
      if (caller === "messages") expect(last).toMatch(/^event: error\n/);
    });

    it("converting: a stream that ends without its end marker or a finish reason is an error", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(events(begun));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const text = await (await proxy.post(path, request("hello", { stream: true }))).text();
      if (isConverting) assertBrokenStream(text);
      else expect(text).toBe(begun.join(""));
    });

    it.each([
      ["closes the connection before an answer", hangUp(CUT)],
      ["resets the connection before an answer", hangUp(RESET)],
      ["answers with something that is no HTTP", raw("hello\r\n\r\n")],
      ["closes in the middle of the answer's head", raw("HTTP/1.1 200 OK\r\ncontent-le")],
      ["answers with a broken head", raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nhello")],
    ])("an upstream that %s is 502", async (_name, answer) => {
      await using upstream = await startFakeUpstream();
      upstream.answerAll(answer);
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const error = await expectError(await proxy.post(path, request()), 502, caller);
      if (caller === "messages") expect(error.type).toBe("api_error");
    });

    it("an unreachable upstream is 502, and the answer does not contain its address", async () => {
      const baseUrl = await closedPort();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream: { baseUrl } }] });
      const error = await expectError(await proxy.post(path, request()), 502, caller);
      expect(error.message).not.toContain(new URL(baseUrl).port);
      expect(error.message).not.toContain("127.0.0.1");
    });

    it("after a failure the next call over the same proxy works", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(hangUp(RESET), raw("garbage\r\n\r\n"), events([...begun, CUT]));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      for (const stream of [false, false, true]) await (await proxy.post(path, request("hello", { stream }))).text();
      const reply = await proxy.post(path, request("still there"));
      expect(CALLERS[caller].textOf(await reply.json())).toBe("echo: still there");
    });
  });

  describe.each(SAME)("$caller passed through", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];

    it("a whole answer that is cut is never ended as if it were whole", async () => {
      await using upstream = await startFakeUpstream();
      for (const headers of [{ "content-length": "100" }, {}]) {
        upstream.answerNext(stream(['{"half":', CUT], { headers: { "content-type": "application/json", ...headers } }));
        await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
        const reply = await proxy.post(path, request());
        await expect(reply.text()).rejects.toThrow();
      }
    });

    it("what an upstream sends after the end of its answer is not passed on", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(
        raw(
          "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
          "HTTP/1.1 200 OK\r\n\r\ntrailing garbage",
        ),
      );
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      expect(await (await proxy.post(path, request())).text()).toBe("{}");
      expect((await proxy.post(path, request())).status).toBe(200);
    });
  });

  describe.each(CONVERTED)("$caller caller, $upstream upstream, converted", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];

    it.each([
      ["is cut", stream(['{"half":', CUT], { headers: { "content-type": "application/json" } })],
      ["is no JSON", json(200, "hello")],
      ["is JSON of another shape", json(200, [1, 2, 3])],
      ["is empty", json(200, "")],
      ["is a page", stream(["<html>hello</html>"], { headers: { "content-type": "text/html" } })],
    ])("a whole answer that %s is 502", async (_name, answer) => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(answer);
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const error = await expectError(await proxy.post(path, request()), 502, caller);
      expect(error.message).not.toContain("hello");
    });

    it("silence inside a whole answer for idleMs is 504", async () => {
      await using upstream = await startFakeUpstream();
      const sent = Promise.withResolvers<void>();
      upstream.answerNext(
        stream(['{"half":', async () => sent.resolve(), new Promise(() => {})], {
          headers: { "content-type": "application/json" },
        }),
      );
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const answering = proxy.post(path, request());
      await sent.promise;
      const reply = await Promise.race([answering, passing(clock)]);
      await expectError(reply, 504, caller);
    });
  });
});

async function readUntil(reply: Reply, word: string): Promise<string> {
  let text = "";
  while (!text.includes(word)) {
    const chunk = await reply.read();
    if (chunk === undefined) throw new Error(`The answer ended without "${word}"`);
    text += chunk.toString("utf8");
  }
  return text;
}

/** Lets time pass until the race has ended: the test cannot see when the head of an answer has arrived. */
async function passing(clock: ReturnType<typeof createManualClock>): Promise<never> {
  for (;;) await clock.advance(60_000);
}

async function closedPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("No port");
  return `http://127.0.0.1:${address.port}/v1`;
}
