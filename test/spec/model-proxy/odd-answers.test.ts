import { describe, expect, it } from "vitest";
import { CALLERS, CONVERTED, expectError, type Protocol } from "../../harness/callers.ts";
import { writeCompletion, writeCompletionChunks } from "../../harness/echo-chat.ts";
import { writeMessage, writeMessageEvents } from "../../harness/echo-messages.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { compress, events, json, splitAt, stream, whole } from "../../harness/upstream-answers.ts";

const TURN = { model: "echo-large", text: "one two", calls: [], finish: "end", inputTokens: 7, outputTokens: 11 } as const;
const JSON_TYPE = { "content-type": "application/json" };
const EVENT_TYPE = { "content-type": "text/event-stream" };

/** A good answer of a protocol, as one text. */
const wholeOf = (protocol: Protocol) =>
  JSON.stringify(protocol === "messages" ? writeMessage(TURN, "msg_1") : writeCompletion(TURN, "chatcmpl-1"));
const eventsOf = (protocol: Protocol) =>
  (protocol === "messages" ? messagesEvents("one two") : chatEvents("one two", true)).join("");

describe.each(["node", "fetch"] as const)("answers of upstreams in the wild, converted (open points 2) on a %s host", (host) => {
  describe.each(CONVERTED)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request, textOf, assertStream, assertBrokenStream } = CALLERS[caller];
    const start = async () => {
      const upstream = await startFakeUpstream();
      const proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      return {
        upstream,
        ask: (isStream: boolean) => proxy.post(path, request("hello", { stream: isStream }), { "accept-encoding": "gzip, br" }),
        async [Symbol.asyncDispose]() {
          await proxy.close();
          await upstream.close();
        },
      };
    };

    it.each(["gzip", "br", "deflate"] as const)(
      "an answer under %s, whole or streamed, is unpacked and converted",
      async (encoding) => {
        await using app = await start();
        const packed = { "content-encoding": encoding };
        app.upstream.answerNext(
          whole(200, compress(encoding, wholeOf(protocol)), { ...JSON_TYPE, ...packed }),
          stream(splitAt(compress(encoding, eventsOf(protocol)), 3, 20, 21), { headers: { ...EVENT_TYPE, ...packed } }),
        );
        const answer = await app.ask(false);
        expect(answer.headers["content-encoding"]).toBeUndefined();
        expect(textOf(await answer.json())).toBe("one two");
        const streamed = await app.ask(true);
        expect(streamed.headers["content-encoding"]).toBeUndefined();
        const text = await streamed.text();
        assertStream(text);
        expect(text).toContain("two");
      },
    );

    describe("an answer with many tool calls, whole or streamed", () => {
      const turnOf = (count: number) => ({
        ...{ ...TURN, text: "", finish: "tool" as const },
        calls: Array.from({ length: count }, (_, at) => ({ id: `call_${at}`, name: "act", input: { at } })),
      });
      const answers = (count: number) => {
        const turn = turnOf(count);
        const [body, parts] =
          protocol === "messages"
            ? [writeMessage(turn, "msg_1"), writeMessageEvents(turn, "msg_1")]
            : [writeCompletion(turn, "chatcmpl-1"), writeCompletionChunks(turn, "chatcmpl-1", true)];
        return [whole(200, JSON.stringify(body), JSON_TYPE), stream([parts.join("")], { headers: EVENT_TYPE })] as const;
      };

      it("is converted with 1,000 of them", async () => {
        await using app = await start();
        app.upstream.answerNext(...answers(1_000));
        expect((await (await app.ask(false)).text()).match(/"act"/g)).toHaveLength(1_000);
        const text = await (await app.ask(true)).text();
        assertStream(text);
        expect(text.match(/"act"/g)).toHaveLength(1_000);
      });

      it("is a broken answer with 1,001", async () => {
        await using app = await start();
        app.upstream.answerNext(...answers(1_001));
        const { message } = await expectError(await app.ask(false), 502, caller);
        expect(message).toContain("more than 1000 tool calls");
        const text = await (await app.ask(true)).text();
        assertBrokenStream(text);
        expect(text).toContain("more than 1000 tool calls");
      });
    });

    it.each(["gzip", "unheard-of"])("an answer that says it is %s and isn't is an error, whole or streamed", async (encoding) => {
      await using app = await start();
      const packed = { "content-encoding": encoding };
      app.upstream.answerNext(
        whole(200, wholeOf(protocol), { ...JSON_TYPE, ...packed }),
        stream([eventsOf(protocol)], { headers: { ...EVENT_TYPE, ...packed } }),
      );
      await expectError(await app.ask(false), 502, caller);
      const streamed = await app.ask(true);
      if (streamed.status === 200) assertBrokenStream(await streamed.text());
      else await expectError(streamed, 502, caller);
    });

    it.each([
      ["another case and a parameter", "Text/Event-Stream; charset=utf-8"],
      ["white space around it", " text/event-stream "],
    ])("a stream whose content type has %s is a stream", async (_name, type) => {
      await using app = await start();
      app.upstream.answerNext(stream([eventsOf(protocol)], { headers: { "content-type": type } }));
      const text = await (await app.ask(true)).text();
      assertStream(text);
      expect(text).toContain("two");
    });

    it.each(["application/json", "text/plain", "application/octet-stream"])(
      "a stream that calls itself %s is a stream, also where a whole answer was asked for",
      async (type) => {
        await using app = await start();
        const named = stream([` \n${eventsOf(protocol)}`], { headers: { "content-type": type } });
        app.upstream.answerNext(named, named);
        const text = await (await app.ask(true)).text();
        assertStream(text);
        expect(text).toContain("two");
        expect(textOf(await (await app.ask(false)).json())).toBe("one two");
      },
    );

    it.each(["text/event-stream", "text/plain"])(
      "a whole answer that calls itself %s is a whole answer, also where a stream was asked for",
      async (type) => {
        await using app = await start();
        const named = whole(200, `\uFEFF\n${wholeOf(protocol)}`, { "content-type": type });
        app.upstream.answerNext(named, named);
        expect(textOf(await (await app.ask(false)).json())).toBe("one two");
        const text = await (await app.ask(true)).text();
        assertStream(text);
        expect(text).toContain("one two");
      },
    );

    it("an answer that ends without content and without a reason is broken, whole or streamed", async () => {
      await using app = await start();
      const [empty, body] =
        protocol === "messages"
          ? [
              messagesEvents("")
                .filter((each) => /message_st/.test(each))
                .join(""),
              { ...JSON.parse(wholeOf(protocol)), content: [], stop_reason: null },
            ]
          : ["data: [DONE]\n\n", { choices: [{ index: 0, message: { role: "assistant", content: "" }, finish_reason: null }] }];
      app.upstream.answerNext(stream([empty], { headers: EVENT_TYPE }), json(200, body));
      assertBrokenStream(await (await app.ask(true)).text());
      await expectError(await app.ask(false), 502, caller);
    });

    it("a whole answer where a stream was asked for becomes a stream", async () => {
      await using app = await start();
      app.upstream.answerNext(json(200, wholeOf(protocol)));
      const reply = await app.ask(true);
      expect(reply.headers["content-type"]).toMatch(/^text\/event-stream/);
      const text = await reply.text();
      assertStream(text);
      expect(text).toContain("one two");
    });

    it("a stream where a whole answer was asked for becomes a whole answer", async () => {
      await using app = await start();
      app.upstream.answerNext(stream([eventsOf(protocol)], { headers: EVENT_TYPE }));
      expect(textOf(await (await app.ask(false)).json())).toBe("one two");
    });

    it("a stream cut into single bytes is the same stream", async () => {
      await using app = await start();
      const bytes = Buffer.from(eventsOf(protocol).replace("two", "zwölf 😀"));
      app.upstream.answerNext(events(splitAt(bytes, ...Array.from({ length: bytes.length - 1 }, (_, index) => index + 1))));
      const text = await (await app.ask(true)).text();
      assertStream(text);
      expect(text).toContain("zwölf 😀");
    });

    it("CRLF, comments, pings and unknown events are accepted", async () => {
      await using app = await start();
      const noisy = eventsOf(protocol)
        .replaceAll(/\n\n(?=.)/g, '\n\n: a comment\n\nevent: odd_one\ndata: {"type":"odd_one"}\n\n')
        .replaceAll("\n", "\r\n");
      app.upstream.answerNext(events([noisy]));
      const text = await (await app.ask(true)).text();
      assertStream(text);
      expect(text).toContain("two");
      expect(text).not.toContain("odd_one");
    });

    it("data after the end marker is ignored", async () => {
      await using app = await start();
      app.upstream.answerNext(events([`${eventsOf(protocol)}data: {"error":{"message":"late"}}\n\nevent: error\ndata: {}\n\n`]));
      const text = await (await app.ask(true)).text();
      assertStream(text);
      expect(text).not.toContain("late");
    });

    it("usage arrives as the caller's protocol counts it", async () => {
      await using app = await start();
      app.upstream.answerNext(json(200, wholeOf(protocol)));
      const answer = (await (await app.ask(false)).json()) as { usage: object };
      const usage =
        caller === "messages"
          ? { input_tokens: 7, output_tokens: 11 }
          : { prompt_tokens: 7, completion_tokens: 11, total_tokens: 18 };
      expect(answer.usage).toMatchObject(usage);
    });

    it("an answer without usage gets no invented usage", async () => {
      await using app = await start();
      const { usage: _usage, ...silent } = JSON.parse(wholeOf(protocol)) as { usage: object };
      app.upstream.answerNext(json(200, silent));
      const answer = (await (await app.ask(false)).json()) as { usage?: unknown };
      // Messages has no way to leave it out: its client libraries read these two fields of every message.
      if (caller === "messages") expect(answer.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 });
      else expect(answer.usage ?? undefined).toBeUndefined();
    });
  });
});
