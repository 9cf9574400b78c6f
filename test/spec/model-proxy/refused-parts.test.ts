import { parseExactly, readUpstreamError, withoutRefusedPart, writeExactly } from "@portico/core/model-protocols";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { json } from "../../harness/upstream-answers.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };

const refused = (message: string, param?: string) => json(400, { error: { message, type: "invalid_request_error", param } });

describe("a refusal that names a part of a converted request", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    proxy = await startProxy({ providers: [{ protocol: "chat-completions", upstream, id: "chat" }] });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const ask = async (more: object) => {
    const reply = await proxy.post("/v1/messages", CALLERS.messages.request("hello", more));
    return { status: reply.status, dropped: reply.headers["x-portico-dropped"], text: await reply.text() };
  };
  const bodies = () => Promise.all(upstream.requests.map(async (request) => JSON.parse(await request.text())));

  it("is answered once without an image that the model does not read (DayuanJiang/next-ai-draw-io#326)", async () => {
    upstream.answerNext(refused("messages[0]: unknown variant `image_url`, expected `text`"));
    const { status, dropped } = await ask({
      messages: [{ role: "user", content: [image, { type: "text", text: "What is it?" }] }],
    });
    expect([status, dropped]).toEqual([200, "messages.content.image"]);
    const [, second] = await bodies();
    expect(JSON.stringify(second)).not.toContain("image_url");
    expect(JSON.stringify(second)).toContain("an image that the provider refused");
  });

  it.each([
    ["temperature", "Unsupported value: 'temperature' does not support 0.5 with this model.", { temperature: 0.5 }],
    ["reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", { thinking: { type: "adaptive" } }],
  ])("is answered once without %s", async (field, message, more) => {
    upstream.answerNext(refused(message));
    const { status, dropped } = await ask(more);
    expect([status, dropped]).toEqual([200, expect.stringContaining(field)]);
    const [first, second] = await bodies();
    expect([field in first, field in second]).toEqual([true, false]);
  });

  it("has the other name of the limit", async () => {
    upstream.answerNext(refused("Unsupported parameter: 'max_completion_tokens'. Use 'max_tokens' instead."));
    expect(await ask({ max_tokens: 9 })).toMatchObject({ status: 200 });
    expect(await bodies()).toEqual([
      expect.objectContaining({ max_completion_tokens: 9 }),
      expect.objectContaining({ max_tokens: 9 }),
    ]);
  });

  it("reaches the caller if the second request is refused, too, and nothing is sent a third time", async () => {
    upstream.answerNext(refused("Unsupported value: 'temperature'"), refused("Unsupported value: 'top_p'"));
    const { status, text } = await ask({ temperature: 0.5, top_p: 0.5 });
    expect([status, text]).toEqual([400, expect.stringContaining("top_p")]);
    expect(upstream.requests).toHaveLength(2);
  });

  it.each([
    ["names no part", "You exceeded your quota"],
    ["uses the name of a field as a word", "messages: roles must alternate between user and assistant"],
    ["says that the conversation is too long", "This model's maximum context length is 128000 tokens, with image tokens"],
  ])("is not answered if it %s", async (_, message) => {
    upstream.answerNext(refused(message));
    const { status, text } = await ask({ messages: [{ role: "user", content: [image] }], metadata: { user_id: "u" } });
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
    expect(upstream.requests).toHaveLength(1);
  });

  it("is answered for a large request, which is changed beside the event loop, too", async () => {
    upstream.answerNext(refused("unknown variant `image_url`"));
    const long = { type: "text", text: "a".repeat(700_000) };
    expect(await ask({ messages: [{ role: "user", content: [image, long] }] })).toMatchObject({ status: 200 });
  });
});

describe("what is left out of a request of Messages", () => {
  const without = (message: string, body: object) =>
    withoutRefusedPart(
      "messages",
      body as never,
      400,
      readUpstreamError("messages", 400, JSON.stringify({ error: { message } })),
    );

  it("is the named image alone, if the refusal names a place (anthropics/claude-code#12041)", () => {
    const messages = [{ role: "user", content: [image, { type: "tool_result", tool_use_id: "a", content: [image] }] }];
    const lighter = without("messages.0.content.1.image.source.base64.data: Image does not match the provided media type", {
      messages,
    });
    expect(JSON.stringify(lighter?.body).match(/"image"/g)).toHaveLength(1);
    expect(lighter?.dropped).toEqual(["messages.content.image"]);
  });

  it("is thinking of earlier turns, if its signature is another model's", () => {
    const messages = [
      { role: "user", content: [{ type: "text", text: "hi" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "x", signature: "s" },
          { type: "text", text: "hello" },
        ],
      },
    ];
    const lighter = without("messages.1.content.0: Invalid `signature` in `thinking` block", {
      messages,
      thinking: { type: "adaptive" },
    });
    expect(lighter?.body).toEqual({
      messages: [messages[0], { role: "assistant", content: [{ type: "text", text: "hello" }] }],
    });
  });

  it("is the effort with its thinking", () => {
    const body = { output_config: { effort: "high", format: { type: "json_schema" } }, thinking: { type: "adaptive" } };
    expect(without("adaptive thinking is not supported on this model", body)).toEqual({
      body: { output_config: { format: { type: "json_schema" } } },
      dropped: ["thinking", "output_config.effort"],
    });
  });

  it("is a mark at any depth", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const body = {
      system: [{ type: "text", text: "a", ...mark }],
      messages: [{ role: "user", content: [{ type: "text", text: "b", ...mark }] }],
    };
    expect(JSON.stringify(without("cache_control: Extra inputs are not permitted", body)?.body)).not.toContain("cache_control");
  });

  it("is a mark alone: numbers with more digits than JavaScript has keep them", () => {
    const body = parseExactly(
      '{"messages":[],"tools":[{"cache_control":{},"input_schema":{"maximum":9007199254740993,"properties":{"a":{"maximum":1.00}}}}]}',
    );
    const lighter = without("cache_control: Extra inputs are not permitted", body as object);
    expect(writeExactly(lighter!.body)).toContain('{"maximum":9007199254740993,"properties":{"a":{"maximum":1');
  });
});
