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

  it.each([
    [
      16_384,
      "max_tokens is too large: 32000. This model supports at most 16384 completion tokens (enoch3712/ExtractThinker#346)",
    ],
    [8_192, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192] (Gitlawb/openclaude#35)"],
    [
      16_001,
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40001 tokens and your request has 24000 input tokens (claude-code-best/claude-code#272)",
    ],
    [
      4_000,
      "This model's maximum context length is 40000 tokens. However, you requested 32000 output tokens and your prompt contains at least 32000 input tokens (vllm-project/vllm#42474)",
    ],
    [
      23_116,
      "This endpoint's maximum context length is 31000 tokens. However, you requested about 39884 tokens (7884 of text input, 32000 in the output). (OpenHands/OpenHands#9937)",
    ],
  ])("has the smaller limit of %d: %s", async (limit, message) => {
    upstream.answerNext(refused(message));
    const { status, dropped } = await ask({ max_tokens: 32_000 });
    expect([status, dropped, (await bodies())[1].max_completion_tokens]).toEqual([200, "max_completion_tokens", limit]);
  });

  it.each([
    [
      "This model only support stream mode, please enable the stream parameter to access the model. (FoundationAgents/OpenManus#330)",
    ],
    ["enable thinking can not be support when `stream=False`. (musistudio/claude-code-router#948)"],
  ])("is a stream, whose answer the caller gets as a whole: %s", async (message) => {
    upstream.answerNext(refused(message));
    const { status, text } = await ask({});
    expect([status, JSON.parse(text).content[0].text]).toEqual([200, expect.stringContaining("hello")]);
    expect((await bodies())[1].stream).toBe(true);
  });

  it("does not think, if it cannot think outside of a stream (langchain4j/langchain4j#3974)", async () => {
    upstream.answerNext(refused("parameter.enable_thinking must be set to false for non-streaming calls"));
    expect((await ask({})).status).toBe(200);
    expect((await bodies())[1].enable_thinking).toBe(false);
  });

  const tools = [
    { name: "look", input_schema: {} },
    { name: "find", input_schema: {} },
  ];
  it.each([
    ["Thinking mode does not support this tool_choice (deepseek-ai/DeepSeek-V3#1376)", { thinking: { type: "disabled" } }],
    ["tool_choice 'specified' is incompatible with thinking enabled (can1357/oh-my-pi#1077)", { thinking: { type: "disabled" } }],
    [
      "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode (cloudwego/eino#994)",
      { enable_thinking: false },
    ],
  ])("calls the forced tool without thinking: %s", async (message, off) => {
    upstream.answerNext(refused(message));
    const { status } = await ask({ tools, tool_choice: { type: "tool", name: "find" }, thinking: { type: "adaptive" } });
    const [first, second] = await bodies();
    expect([status, first.reasoning_effort, second.reasoning_effort]).toEqual([200, "high", undefined]);
    expect(second).toMatchObject({ ...off, tool_choice: { function: { name: "find" } } });
  });

  it("has the forced tool alone, for servers that know no names (lmstudio-ai/lmstudio-bug-tracker#670)", async () => {
    upstream.answerNext(refused("Invalid tool_choice type: 'object'. Supported string values: none, auto, required"));
    expect((await ask({ tools, tool_choice: { type: "tool", name: "find" } })).status).toBe(200);
    expect((await bodies())[1]).toMatchObject({ tools: [{ function: { name: "find" } }], tool_choice: "required" });
  });

  it("describes the answer in words, where no schema is taken (ItzCrazyKns/Vane#969, BerriAI/litellm#7580)", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    upstream.answerNext(refused("This response_format type is unavailable now"));
    const { status, dropped } = await ask({ output_config: { format: { type: "json_schema", schema } }, system: "Be brief." });
    expect([status, dropped]).toEqual([200, "response_format"]);
    const [, { messages, response_format: format }] = await bodies();
    expect([messages[0].content, format]).toEqual([expect.stringMatching(/^Be brief.*JSON Schema.*"a"/s), undefined]);
  });

  it("has shorter descriptions of tools (OpenHands/OpenHands#4838)", async () => {
    upstream.answerNext(
      refused(
        "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 4394 instead.",
        "tools[0].function.description",
      ),
    );
    const { status } = await ask({ tools: [{ name: "look", description: "a".repeat(4_394), input_schema: {} }] });
    expect([status, (await bodies())[1].tools[0].function.description.length]).toEqual([200, 1_024]);
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

  it.each([
    [
      12_000,
      "input length and `max_tokens` exceed context limit: 188000 + 64000 > 200000, decrease input length or `max_tokens`",
    ],
    [8_192, "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022"],
  ])("is as much of its limit that %d tokens remain (docker/docker-agent#569)", (limit, message) => {
    const body = { max_tokens: 64_000, thinking: { type: "enabled", budget_tokens: 32_000 } };
    expect(without(message, body)).toEqual({
      body: { max_tokens: limit, thinking: { type: "enabled", budget_tokens: limit / 2 } },
      dropped: ["max_tokens"],
    });
  });

  it("is nothing, if the conversation leaves no room for an answer", () => {
    const message = "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000";
    expect(without(message, { max_tokens: 8_192 })).toBeUndefined();
  });

  it("is the schema of its answer, which becomes words", () => {
    const body = {
      system: "Be brief.",
      output_config: { effort: "low", format: { type: "json_schema", schema: { type: "object" } } },
    };
    expect(without("output_config.format: Extra inputs are not permitted", body)).toMatchObject({
      body: {
        output_config: { effort: "low" },
        system: [{ text: "Be brief." }, { text: expect.stringContaining("JSON Schema") }],
      },
      dropped: ["output_config.format"],
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
