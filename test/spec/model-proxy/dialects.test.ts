import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { createApp, ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { readPage } from "../docs/pages.ts";
import { CALLERS } from "../../harness/callers.ts";
import { withVendorTables } from "../../../release/references/vendors.ts";

const { request } = CALLERS.messages;

/** A conversation that uses everything in which dialects differ. */
const everything = request("and now?", {
  thinking: { type: "adaptive" },
  output_config: { effort: "low" },
  stream: true,
  messages: [
    { role: "user", content: "hello" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "sig" },
        { type: "text", text: "hello" },
      ],
    },
    { role: "user", content: "and now?" },
  ],
});
const [REASONING_CONTENT, REASONING_DETAILS] = ["reasoning_content", "reasoning_details"];

describe("providers that take less (open points 12)", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const provider = (id: string, dialect?: Partial<ports.ChatDialect>, type = "test-vendor") =>
      ({ protocol: "chat-completions", upstream, id, type, ...(dialect && { dialect }) }) as const;
    proxy = await startProxy({
      providers: [
        provider("published"),
        provider("older-limit", { maxTokens: "max_tokens" }),
        provider("no-effort", { reasoning: "none" }),
        provider("no-stream-options", { streamOptions: false }),
        provider("no-reasoning", { reasoningContent: false }),
        provider("by-vendor", undefined, "Mistral"),
        provider("by-setting", { reasoningContent: true }, "mistral"),
      ],
    });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });

  /** What a provider was sent, and what its caller was told to be left out. */
  async function send(
    provider: string,
    body: object,
  ): Promise<{ sent: Record<string, unknown>; assistant: object; dropped: string[] }> {
    const reply = await proxy.post("/v1/messages", body, { authorization: `Bearer ${await proxy.token(provider)}` });
    expect(reply.status).toBe(200);
    await reply.text();
    const sent = JSON.parse(await (await upstream.request()).text()) as Record<string, unknown>;
    const assistant = (sent["messages"] as { role: string }[]).find(({ role }) => role === "assistant") ?? {};
    return { sent, assistant, dropped: reply.headers["x-portico-dropped"]?.split(", ") ?? [] };
  }

  it("one without a dialect is sent all four, and nothing is dropped", async () => {
    const { sent, assistant, dropped } = await send("published", everything);
    expect(sent).toMatchObject({
      max_completion_tokens: 1024,
      reasoning_effort: "low",
      stream_options: { include_usage: true },
    });
    expect(sent).not.toHaveProperty("max_tokens");
    expect(assistant).toMatchObject({ reasoning_content: "hm", reasoning_details: [{ type: "reasoning.text" }] });
    expect(dropped).toEqual([]);
  });

  it("maxTokens: max_tokens keeps the older name, and only that", async () => {
    const { sent, dropped } = await send("older-limit", everything);
    expect(sent).toMatchObject({ max_tokens: 1024, reasoning_effort: "low" });
    expect(sent).not.toHaveProperty("max_completion_tokens");
    expect(dropped).toEqual([]);
  });

  it("reasoning: none sends no effort and names what asked for it", async () => {
    const { sent, dropped } = await send("no-effort", everything);
    expect(sent).not.toHaveProperty("reasoning_effort");
    expect(dropped).toEqual(["thinking", "output_config.effort"]);
  });

  it("streamOptions: false does not ask for usage", async () => {
    const { sent } = await send("no-stream-options", everything);
    expect(sent).toMatchObject({ stream: true });
    expect(sent).not.toHaveProperty("stream_options");
  });

  it("reasoningContent: false leaves out reasoning_content and reasoning_details, and names the blocks", async () => {
    const { assistant, dropped } = await send("no-reasoning", everything);
    expect(assistant).toEqual({ role: "assistant", content: "hello" });
    expect(dropped).toEqual(["messages.content.thinking"]);
  });

  it("reasoningContent: false leaves out a turn that held reasoning alone", async () => {
    const messages = [
      { role: "user", content: "hello" },
      { role: "assistant", content: [{ type: "redacted_thinking", data: "blob" }] },
      { role: "user", content: "still there?" },
    ];
    const { sent, dropped } = await send("no-reasoning", request("", { messages }));
    expect(sent["messages"]).toEqual([
      { role: "user", content: "hello" },
      { role: "user", content: "still there?" },
    ]);
    expect(dropped).toEqual(["messages.content.redacted_thinking"]);
  });

  it("a vendor that is known by its type takes what is known of it", async () => {
    const { sent, assistant, dropped } = await send("by-vendor", everything);
    expect(sent).toMatchObject({ max_tokens: 1024, stream: true });
    expect(Object.keys(sent).sort()).toEqual(["max_tokens", "messages", "model", "stream"]);
    expect(assistant).toEqual({ role: "assistant", content: "hello" });
    expect(dropped).toEqual(["messages.content.thinking", "thinking", "output_config.effort"]);
  });

  it("a setting is stronger than what is known of the vendor, key by key", async () => {
    const { sent, assistant } = await send("by-setting", everything);
    expect(sent).toMatchObject({ max_tokens: 1024 });
    expect(assistant).toHaveProperty(REASONING_CONTENT, "hm");
    expect(assistant).toHaveProperty(REASONING_DETAILS);
  });

  it("a call of the same protocol is forwarded unchanged, with any dialect", async () => {
    const body = CALLERS["chat-completions"].request("hello", {
      max_completion_tokens: 5,
      reasoning_effort: "high",
      stream_options: { include_usage: true },
      stream: true,
    });
    const reply = await proxy.post("/v1/chat/completions", body, { authorization: `Bearer ${await proxy.token("by-vendor")}` });
    await reply.text();
    expect(JSON.parse(await (await upstream.request()).text())).toEqual(body);
    expect(reply.headers["x-portico-dropped"]).toBeUndefined();
  });

  it("a large request, which is converted beside the event loop, follows the dialect, too", async () => {
    const { sent, dropped } = await send("no-effort", { ...everything, system: "x".repeat(600 * 1024) });
    expect(sent).not.toHaveProperty("reasoning_effort");
    expect(dropped).toEqual(["thinking", "output_config.effort"]);
  });

  it.each([{}, { output_config: { effort: "high" } }])("thinking that is switched off sends no effort: %j", async (more) => {
    const { sent, dropped } = await send("published", request("hello", { thinking: { type: "disabled" }, ...more }));
    expect(sent).not.toHaveProperty("reasoning_effort");
    expect(dropped).toEqual(["thinking", ...("output_config" in more ? ["output_config.effort"] : [])]);
  });

  describe("the billing line that a coding tool puts first in system", () => {
    const LINE = "x-anthropic-billing-header: cc_version=2.1.197.1c0; cc_entrypoint=cli; cch=00000;";
    const systemOf = (sent: Record<string, unknown>) => (sent["messages"] as { role: string; content: string }[])[0];

    it.each([
      [
        "as a block of its own",
        [
          { type: "text", text: LINE },
          { type: "text", text: "be brief" },
        ],
      ],
      ["at the head of a block", [{ type: "text", text: `${LINE}\nbe brief` }]],
      ["at the head of a string", `${LINE}\nbe brief`],
    ])("is left out and named, %s", async (_name, system) => {
      const { sent, dropped } = await send("published", request("hello", { system }));
      expect(systemOf(sent)).toEqual({ role: "system", content: "be brief" });
      expect(dropped).toEqual(["system.x-anthropic-billing-header"]);
    });

    it("is left out where it is all there is", async () => {
      const { sent } = await send("published", request("hello", { system: LINE }));
      expect(systemOf(sent)).toEqual({ role: "user", content: "hello" });
    });

    it("is nothing but text anywhere else", async () => {
      const { sent, dropped } = await send("published", request("hello", { system: `be brief\n${LINE}` }));
      expect(systemOf(sent)).toEqual({ role: "system", content: `be brief\n${LINE}` });
      expect(dropped).toEqual([]);
    });
  });
});

describe("what is known of vendors", () => {
  async function dialectOf(
    baseUrl: string,
    type = "mine",
    dialect?: Partial<ports.ChatDialect>,
  ): Promise<ports.ChatDialect | undefined> {
    await using app = await createApp({
      name: "one-provider",
      adapters: [systemClock(), chatHttp({ id: "main", type, baseUrl, models: ["m"], ...(dialect && { dialect }) })],
    });
    return app.port(ports.models)[0]?.facts?.("m").chat;
  }
  const all = ports.PUBLISHED_CHAT_DIALECT;

  it.each<[string, Partial<ports.ChatDialect>]>([
    ["https://api.openai.com/v1", { reasoningContent: false }],
    [
      "https://api.mistral.ai/v1",
      {
        maxTokens: "max_tokens",
        reasoning: "none",
        streamOptions: false,
        reasoningContent: false,
        user: false,
        userAfterTool: false,
        toolIds: "nine",
        prefill: false,
      },
    ],
    ["https://api.groq.com/openai/v1", { reasoning: "none", reasoningContent: false }],
    [
      "https://api.deepseek.com/v1",
      { maxTokens: "max_tokens", reasoningOfCalls: "required", thinkingSwitch: "thinking", answerSchema: false },
    ],
    [
      "https://generativelanguage.googleapis.com/v1beta/openai",
      { reasoningContent: false, thoughtSignatures: true, turns: "strict", toolSchemas: "google" },
    ],
    ["https://api.moonshot.ai/v1", { reasoningOfCalls: "required", toolSchemas: "typed", thinkingSwitch: "thinking" }],
    ["https://api.cerebras.ai/v1", { reasoningContent: false }],
    ["https://api.perplexity.ai", { turns: "strict", prefill: false }],
    ["https://dashscope-intl.aliyuncs.com/compatible-mode/v1", { thinkingSwitch: "enable_thinking" }],
    ["https://api.x.ai/v1", { reasoning: "none" }],
    ["https://eu-west-1.api.x.ai/v1", { reasoning: "none" }],
    ["https://api.together.xyz/v1", { maxTokens: "max_tokens" }],
    ["https://openrouter.ai/api/v1", { cacheMarks: true }],
    ["https://api.mistral.ai.example/v1", {}],
    ["https://notapi.mistral.ai/v1", {}],
    ["http://127.0.0.1:8000/v1", {}],
  ])("%s is known by its host", async (baseUrl, differs) => {
    expect(await dialectOf(baseUrl)).toEqual({ ...all, ...differs });
  });

  it.each<[string, Partial<ports.ChatDialect>]>([
    ["ollama", { maxTokens: "max_tokens", reasoning: "none", turns: "strict", contentOfCalls: "empty" }],
    ["vllm", { turns: "strict" }],
    ["llamacpp", { maxTokens: "max_tokens", turns: "strict" }],
    ["LMStudio", { maxTokens: "max_tokens", turns: "strict", contentOfCalls: "empty", toolChoice: "words" }],
    // Whatever is compatible is called that.
    ["openai", {}],
    ["constructor", {}],
  ])("%s is known by its type", async (type, differs) => {
    expect(await dialectOf("http://127.0.0.1:9/v1", type)).toEqual({ ...all, ...differs });
  });

  it("is described in the documentation (npm run docs:vendors)", async () => {
    const { text } = await readPage("docs/vendors.md");
    expect(withVendorTables(text)).toBe(text);
  });

  it("the host says more than the type", async () => {
    expect(await dialectOf("https://openrouter.ai/api/v1", "mistral")).toEqual({ ...all, cacheMarks: true });
  });

  it("a setting says more than both", async () => {
    expect(await dialectOf("https://api.x.ai/v1", "xai", { reasoning: "effort", streamOptions: false })).toEqual({
      ...all,
      streamOptions: false,
    });
  });
});
