import { createManualClock } from "@portico/adapters/clock/manual";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { writeCompletion } from "../../harness/echo-chat.ts";
import { writeMessage } from "../../harness/echo-messages.ts";
import { CALLERS, COMBINATIONS, type Protocol, SAME } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { compress, CUT, events, hangUp, json, RESET, splitAt, type Step, stream, whole } from "../../harness/upstream-answers.ts";

const eventsOf = (protocol: Protocol) => (protocol === "messages" ? messagesEvents("one two") : chatEvents("one two", true));
const wholeOf = (protocol: Protocol, text = "one two") => {
  const turn = { model: "echo-large", text, calls: [], finish: "end", inputTokens: 7, outputTokens: 11 } as const;
  return JSON.stringify(protocol === "messages" ? writeMessage(turn, "msg_1") : writeCompletion(turn, "chatcmpl-1"));
};
const USED = { inputTokens: 7, outputTokens: 11, error: undefined };

describe.each(["node", "fetch"] as const)("what is told of answers (specification 4.1) on a %s host", (host) => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request, assertBrokenStream } = CALLERS[caller];
    const script = eventsOf(protocol);
    const begun = script.slice(0, script.findIndex((event) => event.includes("one")) + 1);
    const clock = createManualClock();
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    beforeAll(async () => {
      upstream = await startFakeUpstream();
      proxy = await startProxy({ host, clock, providers: [{ protocol, upstream, timeouts: { idleMs: 60_000 } }] });
    });
    beforeEach(() => upstream.reset());
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    const ask = (isStream = true, headers = {}) => proxy.post(path, request("hello", { stream: isStream }), headers);
    /** The record of the next request, after `during` has ended. */
    const toldOf = async (during: () => Promise<unknown>) => {
      const before = proxy.telemetry.requests.length;
      await during();
      await expect.poll(() => proxy.telemetry.requests.length).toBe(before + 1);
      return proxy.telemetry.requests[before]!;
    };

    it.each<Step>([CUT, RESET])(
      "a stream whose connection breaks: the error is told, and what happened in the stream",
      async (how) => {
        upstream.answerNext(events([...begun, how]));
        let text = "";
        const told = await toldOf(async () => (text = await (await ask()).text()));
        expect(told).toMatchObject({ status: 200, error: "upstream_broken", model: "echo-large" });
        assertBrokenStream(text);
        expect(text).toContain("ended its answer early");
        expect(text).not.toContain("could not be reached");
      },
    );

    it("a stream that falls silent: a time-out is told", async () => {
      upstream.answerNext(events([...begun, new Promise(() => {})]));
      const told = await toldOf(async () => {
        const reply = await ask();
        // All that there is: what arrives later would begin the silence anew.
        for (let text = ""; !text.includes("one"); text += String(await reply.read())) expect(text).not.toContain("undefined");
        await clock.advance(61_000);
        await reply.text();
      });
      expect(told).toMatchObject({ status: 200, error: "upstream_timeout" });
    });

    it("an upstream that closes without an answer was reached: 502 says so", async () => {
      upstream.answerNext(hangUp());
      let text = "";
      const told = await toldOf(async () => (text = await (await ask()).text()));
      expect(told).toMatchObject({ status: 502, error: "upstream_unreachable" });
      expect(text).toContain("closed the connection before it answered");
    });

    it("an error that the upstream tells inside its stream", async () => {
      const error =
        protocol === "messages"
          ? 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
          : 'data: {"error":{"message":"Overloaded","type":"server_error"}}\n\n';
      upstream.answerNext(events([...begun, error]));
      expect(await toldOf(async () => (await ask()).text())).toMatchObject({ status: 200, error: "upstream_error" });
    });

    it("a stream that closes in order before its answer was finished", async () => {
      upstream.answerNext(events(begun));
      expect(await toldOf(async () => (await ask()).text())).toMatchObject({ status: 200, error: "upstream_broken" });
    });

    it("a caller that leaves in the middle of a stream", async () => {
      upstream.answerNext(events([...begun, new Promise(() => {})]));
      const told = await toldOf(async () => {
        const reply = await ask();
        await reply.read();
        reply.leave();
      });
      expect(told).toMatchObject({ status: 200, error: "caller_left" });
    });

    it("an answer that ends well: its tokens, and no error", async () => {
      upstream.answerNext(events(script), json(200, wholeOf(protocol)));
      expect(await toldOf(async () => (await ask()).text())).toMatchObject(USED);
      expect(await toldOf(async () => (await ask(false)).text())).toMatchObject(USED);
    });
  });

  describe.each(SAME)("tokens of $caller answers that pass unchanged", ({ caller: protocol }) => {
    const { path, request } = CALLERS[protocol];
    const text = eventsOf(protocol).join("");
    /** As long as a model's, with words in it that look like what is searched. */
    const long = 'He said "usage": {"input_tokens": 1, "prompt_tokens": 1}, [DONE] and message_stop. '.repeat(2_000);
    const body = wholeOf(protocol, long);
    const longText = text.replace("one", JSON.stringify(long).slice(1, -1));
    const EVENTS = { "content-type": "text/event-stream; charset=utf-8" };
    const JSONS = { "content-type": "application/json" };
    const gzip = { "content-encoding": "gzip" };
    const inPieces = (bytes: string | Uint8Array) =>
      splitAt(bytes, 1, 2, 20, 21, Math.floor(bytes.length / 2), bytes.length - 40);

    it.each([
      ["a stream, cut anywhere", stream(inPieces(text), { headers: EVENTS })],
      ["a long stream", stream(inPieces(longText), { headers: EVENTS })],
      ["a stream with CRLF", stream([text.replaceAll("\n", "\r\n")], { headers: EVENTS })],
      ["a compressed stream", stream(inPieces(compress("gzip", longText)), { headers: { ...EVENTS, ...gzip } })],
      ["a long whole answer", whole(200, body, JSONS)],
      ["a whole answer in pieces", stream(inPieces(body), { headers: JSONS })],
      ["a compressed whole answer", whole(200, compress("br", body), { ...JSONS, "content-encoding": "br" })],
      [
        "a whole answer with usage of another meaning",
        whole(200, body.replace(/\}$/, ',"later":{"usage":{"input_tokens":1,"prompt_tokens":1}},"tag":"usage"}'), JSONS),
      ],
    ])("%s", async (_name, answer) => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(answer);
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request());
      await reply.bytes();
      await expect.poll(() => proxy.telemetry.requests).toMatchObject([USED]);
    });

    it.each([
      ["no usage", json(200, { ok: true })],
      ["usage that is none", json(200, { usage: { input_tokens: "7", prompt_tokens: -1 } })],
      ["bytes that are not what they are said to be", whole(200, body, { ...JSONS, ...gzip })],
      ["an encoding that nobody knows", whole(200, body, { ...JSONS, "content-encoding": "unheard-of" })],
    ])("%s: the answer passes, and no count is invented", async (_name, answer) => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(answer);
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      expect((await (await proxy.post(path, request())).bytes()).length).toBeGreaterThan(0);
      await expect.poll(() => proxy.telemetry.requests).toHaveLength(1);
      const [{ inputTokens, outputTokens, error }] = proxy.telemetry.requests as [(typeof proxy.telemetry.requests)[number]];
      expect([inputTokens, outputTokens, error]).toEqual([undefined, undefined, undefined]);
    });
  });
});
