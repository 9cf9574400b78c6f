import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError, PROTOCOLS } from "../../harness/callers.ts";
import { writeResponse } from "../../harness/echo-responses.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { type ResponsesLimits, responsesRefusal } from "../../harness/responses-refusals.ts";
import { responsesEvents } from "../../harness/stream-scripts.ts";
import { compress, CUT, events, json } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
const MODEL = {
  id: "large",
  upstream: "vendor/large-2026",
  aliases: ["best"],
  images: false as const,
  parameters: {
    defaults: { temperature: 0.3, service_tier: "flex" },
    fixed: { text: { verbosity: "low" }, safety_identifier: null },
  },
  headers: { "X-Team": "house", "x-api-token": "a-secret-of-the-model" },
};

/** A model of the vendor with these limits, which answers whole. */
function limited(limits: ResponsesLimits): Answer {
  return async (exchange) => {
    const body = await exchange.request.json();
    const error = responsesRefusal(body, limits);
    const turn = { model: "echo-large", text: "fine", calls: [], finish: "end" as const, inputTokens: 1, outputTokens: 1 };
    return error ? json(400, { error })(exchange) : json(200, writeResponse(turn, "1"))(exchange);
  };
}

describe("a provider of the Responses API", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  // What a model refuses is remembered, so each test gets a provider of its own.
  beforeAll(async () => void (upstream = await startFakeUpstream()));
  beforeEach(async () => {
    upstream.reset();
    await proxy?.close();
    proxy = await startProxy({ providers: [{ protocol: "responses", upstream, models: ["echo-large", MODEL] }] });
  });
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const bodies = () => Promise.all(upstream.requests.map(async (request) => JSON.parse(await request.text())));
  const dropped = (headers: Readonly<Record<string, string>>) => headers["x-portico-dropped"]?.split(/, ?/) ?? [];

  describe.each(PROTOCOLS)("for callers of %s", (caller) => {
    const { path, request, textOf, assertBrokenStream, assertStream } = CALLERS[caller];
    const thinking = caller === "messages" ? { thinking: { type: "adaptive" } } : { reasoning_effort: "high" };
    const user = caller === "messages" ? { metadata: { user_id: "u".repeat(64) } } : { user: "u".repeat(64) };

    it.each([
      ["temperature", { temperature: 0.5 }, { samples: false }, (body: any) => body.temperature, ["temperature"]],
      ["the summary of reasoning", thinking, { summarizes: false }, (body: any) => body.reasoning?.summary, ["thinking.display"]],
      ["encrypted reasoning", {}, { encrypts: false }, (body: any) => body.include, []],
    ] as const)("%s that a model refuses is left out of a second request, and named", async (_, more, limits, part, names) => {
      upstream.answerAll(limited(limits));
      const reply = await proxy.post(path, request("hello", more));
      expect([reply.status, dropped(reply.headers)]).toEqual([200, [...names]]);
      expect(textOf(await reply.json())).toBe("fine");
      expect((await bodies()).map((body) => part(body) !== undefined)).toEqual([true, false]);
    });

    const PDF = Buffer.from("%PDF-1.4\n").toString("base64");
    const ofChat = (type: string, member: object) => ({ type, [type]: member });
    it.each([
      [
        "image",
        "Invalid 'input[0].content[0].image_url'. The model does not support image inputs.",
        caller === "messages" ? image : ofChat("image_url", { url: `data:image/png;base64,${PNG}` }),
      ],
      [
        "document",
        "Invalid 'input[0].content[0].file_data'.",
        caller === "messages"
          ? { type: "document", source: { type: "base64", media_type: "application/pdf", data: PDF } }
          : ofChat("file", { filename: "a.pdf", file_data: `data:application/pdf;base64,${PDF}` }),
      ],
    ] as const)(
      "a refusal that names the %s is answered once without it, and its caller is told",
      async (kind, message, part) => {
        const messages = [{ role: "user", content: [part, { type: "text", text: "What is it?" }] }];
        upstream.answerNext(json(400, { error: { message, type: "invalid_request_error", param: "input[0].content[0]" } }));
        const reply = await proxy.post(path, request("", { messages, temperature: 0.5 }));
        expect([reply.status, dropped(reply.headers)]).toEqual([200, [`messages.content.${kind}`]]);
        const [first, second] = await bodies();
        expect(first.input[0].content[0].type).toBe(kind === "image" ? "input_image" : "input_file");
        expect(second).toMatchObject({
          temperature: 0.5,
          input: [{ content: [{ text: expect.stringContaining("that the provider refused") }, { text: "What is it?" }] }],
        });
        // The next request may have another image.
        upstream.reset();
        await proxy.post(path, request("", { messages }));
        expect((await bodies()).map(({ input }) => input[0].content[0].type)).toEqual([first.input[0].content[0].type]);
      },
    );

    it("a part that a model refused is left out of its next requests from the beginning", async () => {
      upstream.answerAll(limited({ samples: false }));
      await proxy.post(path, request("hello", { temperature: 0.5 }));
      const reply = await proxy.post(path, request("hello", { temperature: 0.5 }));
      expect([dropped(reply.headers), upstream.requests.length]).toEqual([["temperature"], 3]);
    });

    it("a refusal that names no part is the answer", async () => {
      upstream.answerAll(json(400, { error: { message: "You are out of luck", type: "invalid_request_error" } }));
      const { message } = await expectError(await proxy.post(path, request("hello", { temperature: 0.5 })), 400, caller);
      expect([message, upstream.requests.length]).toEqual(["You are out of luck", 1]);
    });

    it("fields without counterpart are named in x-portico-dropped", async () => {
      const more = caller === "messages" ? { top_k: 5, vendor_extension: 1 } : { seed: 5, vendor_extension: 1 };
      const reply = await proxy.post(path, request("hello", { ...user, ...more }));
      expect([reply.status, dropped(reply.headers).toSorted()]).toEqual([200, Object.keys(more).toSorted()]);
      const [body] = await bodies();
      expect(body).toMatchObject({ safety_identifier: "u".repeat(64), store: false });
    });

    it("a request of more than 512 KiB arrives whole, also without a refused part", async () => {
      const text = Array.from({ length: 60_000 }, (_, line) => `${line} naïve ☃`).join("\n");
      upstream.answerNext(json(400, { error: responsesRefusal({ input: "a", temperature: 1 }, { samples: false }) }));
      const reply = await proxy.post(path, request(text, { temperature: 0.5 }));
      expect([reply.status, dropped(reply.headers)]).toEqual([200, ["temperature"]]);
      const [first, second] = await bodies();
      expect(first.input[0].content === text).toBe(true);
      const { temperature, ...rest } = first;
      expect([temperature, JSON.stringify(second) === JSON.stringify(rest)]).toEqual([0.5, true]);
    });

    it("a large request that cannot be converted is refused, with the name of its field", async () => {
      const more = caller === "messages" ? { tools: [{ type: "bash_20250124", name: "bash" }] } : { n: 2 };
      const reply = await proxy.post(path, request("a".repeat(700_000), more));
      const { message } = await expectError(reply, 400, caller);
      expect([message, upstream.requests.length]).toEqual([expect.stringContaining(caller === "messages" ? "bash" : "n"), 0]);
    });

    it.each(["gzip", "br", "deflate"] as const)("a body in %s is read", async (encoding) => {
      const body = compress(encoding, JSON.stringify(request("hello")));
      const headers = { "content-type": "application/json", "content-encoding": encoding, "x-api-key": await proxy.token() };
      const reply = await proxy.call({ path, headers, body });
      expect(textOf(await reply.json())).toBe("echo: hello");
      expect((await upstream.request()).headers).not.toHaveProperty("content-encoding");
    });

    it("a stream is a stream of its caller's protocol", async () => {
      const reply = await proxy.post(path, request("hello", { stream: true }));
      assertStream(await reply.text());
    });

    const script = responsesEvents("one two three");
    const failed = { error: { code: "server_error", message: "It broke at 127.0.0.1" }, status: "failed" };
    it.each([
      ["an error event", [`event: error\ndata: {"type":"error","code":"server_error","message":"It broke"}\n\n`]],
      ["a failed response", [`data: ${JSON.stringify({ type: "response.failed", response: failed })}\n\n`]],
      ["a cut", [CUT]],
      ["an end that is too early", []],
    ] as const)("%s in mid-stream ends the stream with the protocol's error", async (_, end) => {
      upstream.answerNext(events([...script.slice(0, 4), ...end]));
      const reply = await proxy.post(path, request("hello", { stream: true }));
      const text = await reply.text();
      assertBrokenStream(text);
      expect(text).not.toContain("127.0.0.1");
    });

    it.each(["large", "best"])("a call of %s has the upstream's name, and the caller's in the answer", async (model) => {
      const reply = await proxy.post(path, request("hello", { model }));
      expect(await reply.json()).toMatchObject({ model });
      expect(await bodies()).toMatchObject([{ model: "vendor/large-2026" }]);
    });

    it("parameters of a model are set in the upstream's protocol, whatever its size", async () => {
      for (const text of ["hello", "a".repeat(700_000)]) {
        upstream.reset();
        await proxy.post(path, request(text, { model: "large", ...user }));
        const [body] = await bodies();
        expect(body).toMatchObject({ temperature: 0.3, service_tier: "flex", text: { verbosity: "low" } });
        expect(body).not.toHaveProperty("safety_identifier");
      }
      upstream.reset();
      await proxy.post(path, request("hello", { model: "large", temperature: 0.9 }));
      expect(await bodies()).toMatchObject([{ temperature: 0.9 }]);
    });

    it("headers of a model are added to its calls alone", async () => {
      await proxy.post(path, request("hello", { model: "best" }));
      expect((await upstream.request()).headers).toMatchObject({ "x-team": "house", "x-api-token": "a-secret-of-the-model" });
      upstream.reset();
      await proxy.post(path, request("hello"));
      expect((await upstream.request()).headers).not.toHaveProperty("x-team");
    });
  });

  it("a model without images gets notes, and its caller is told", async () => {
    const messages = (content: object) => [
      { role: "user", content: [{ type: "text", text: "look" }, image] },
      { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: [content] }] },
    ];
    const file = { type: "document", source: { type: "url", url: "https://files.example/a.pdf" } };
    const reply = await proxy.post(
      "/v1/messages",
      CALLERS.messages.request("", { model: "large", messages: [...messages(image), { role: "user", content: [file, image] }] }),
    );
    expect([reply.status, dropped(reply.headers)]).toEqual([200, ["messages.content.image", "messages.content.document"]]);
    const text = JSON.stringify(await bodies());
    expect(text).not.toContain(PNG);
    expect(text.match(/an image, image\/png, that cannot be shown here/g)).toHaveLength(3);
    const chat = [{ type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }];
    upstream.reset();
    await proxy.post("/v1/chat/completions", { model: "large", messages: [{ role: "user", content: chat }] });
    expect(JSON.stringify(await bodies())).toContain("an image, image/png, that cannot be shown here");
  });

  it("an image has the type of its bytes (BerriAI/litellm#24900)", async () => {
    const source = { ...image.source, media_type: "image/jpeg" };
    await proxy.post(
      "/v1/messages",
      CALLERS.messages.request("", { messages: [{ role: "user", content: [{ ...image, source }] }] }),
    );
    expect(JSON.stringify(await bodies())).toContain("data:image/png;base64");
  });
});
