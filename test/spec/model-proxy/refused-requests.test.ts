import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, type Protocol } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { png } from "../../harness/media-samples.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { refusingModel, type Vendor } from "../../harness/vendor-refusals.ts";

/** Types of providers, and the vendor whose rules their requests must keep. */
const TYPES: Readonly<Record<string, Vendor>> = {
  ...{ openai: "openai", anthropic: "anthropic", deepseek: "deepseek", mistral: "mistral", google: "google" },
  ...{ kimi: "kimi", perplexity: "perplexity", lmstudio: "lmstudio", cerebras: "cerebras", vllm: "template" },
};

const schemaOf = (property: object) => ({ type: "object", properties: { p: property } });
/** The fields of a request with these tools, in the caller's protocol. */
const tools = (caller: Protocol, ...each: readonly (readonly [name: string, schema: object])[]) => ({
  tools: each.map(([name, schema]) =>
    caller === "messages" ? { name, input_schema: schema } : { type: "function", function: { name, parameters: schema } },
  ),
});
const use = { type: "tool_use", id: "call_1", name: "look", input: {} };
const result = (content: unknown) => ({ type: "tool_result", tool_use_id: "call_1", content });
const turns = (...contents: readonly unknown[]) => ({
  messages: contents.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
});
const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
const marked = (text: string) => ({ type: "text", text, cache_control: { type: "ephemeral" } });
const picture = {
  type: "image_url",
  image_url: { url: `data:image/png;base64,${png(3_000, 10).toString("base64")}` },
};
const answerSchema = {
  type: "object",
  properties: { age: { type: "integer", minimum: 1 }, more: { type: "object", additionalProperties: true } },
};

/** Requests that vendors refused, each with its report. The caller's protocol is not the provider's. */
const REFUSED: readonly (readonly [what: string, type: string, fields: object])[] = [
  ["a tool without properties (spring-projects/spring-ai#4776)", "openai", tools("messages", ["look", { type: "object" }])],
  [
    "an array without items (ruvnet/ruflo#1294, mark3labs/mcphost#35)",
    "openai",
    tools("messages", ["look", schemaOf({ anyOf: [{ type: "array" }, { type: "string" }] })]),
  ],
  [
    "a tuple of an older draft (kintone/mcp-server#553)",
    "openai",
    tools("messages", ["look", schemaOf({ type: "array", items: [{ type: "string" }, { type: "number" }] })]),
  ],
  [
    "two tools of one name (danny-avila/LibreChat#13162)",
    "openai",
    tools("messages", ["look", { type: "object" }], ["look", { type: "object", properties: { a: {} } }]),
  ],
  [
    "a tool that returned nothing (earendil-works/pi#3365)",
    "openai",
    { ...tools("messages", ["look", { type: "object" }]), ...turns("go", [use], [result("")]) },
  ],
  ["an assistant that said nothing (earendil-works/pi#3365)", "openai", turns("go", [{ type: "text", text: "" }], "and?")],
  [
    "two tools of one name (eclipse-theia/theia#16122)",
    "anthropic",
    tools("chat-completions", ["look", { type: "object" }], ["look", { type: "object" }]),
  ],
  [
    "a tuple of an older draft (kintone/mcp-server#553)",
    "anthropic",
    tools("chat-completions", ["look", schemaOf({ type: "array", items: [{ type: "string" }] })]),
  ],
  [
    "patterns of names (openclaw/openclaw#29416)",
    "anthropic",
    tools("chat-completions", ["look", schemaOf({ type: "object", patternProperties: { "^(.*)$": {} } })]),
  ],
  [
    "flags of an older draft (anthropics/claude-code#7365)",
    "anthropic",
    tools("chat-completions", ["look", schemaOf({ type: "number", minimum: 0, exclusiveMinimum: true, required: true })]),
  ],
  [
    "a type that is none (MarkusPfundstein/mcp-gsuite#19)",
    "anthropic",
    tools("chat-completions", ["look", schemaOf({ type: "any" })]),
  ],
  [
    "more than four cache marks (tghamm/Anthropic.SDK#50, griffinmartin/opencode-claude-auth#121)",
    "anthropic",
    turns([marked("a"), marked("b"), marked("c")], [marked("d")], [marked("e"), marked("f")]),
  ],
  [
    "calls in the conversation without tools (langgenius/dify#17545, aws-samples/bedrock-access-gateway#239)",
    "anthropic",
    {
      messages: [
        { role: "user", content: "go" },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "seen" },
        { role: "user", content: "Sum up." },
      ],
    },
  ],
  [
    "bounds, constants, references and further properties (Wei-Shaw/sub2api#5506, zed-extensions/mcp-server-brave-search#12, nanbingxyz/5ire#42)",
    "google",
    tools("messages", [
      "look",
      {
        type: "object",
        $defs: { depth: { type: "integer", exclusiveMinimum: 0 } },
        properties: {
          depth: { $ref: "#/$defs/depth" },
          kind: { oneOf: [{ const: "a" }, { const: "b" }] },
          more: { type: "object", additionalProperties: { type: "string" } },
          list: { type: "array" },
        },
      },
    ]),
  ],
  [
    "a conversation that begins with a call (google-gemini/gemini-cli#11814, lobehub/lobehub#10049)",
    "google",
    {
      messages: [
        { role: "assistant", content: [use] },
        { role: "user", content: [result("seen")] },
      ],
    },
  ],
  [
    "a call after a text of the assistant (google-gemini/gemini-cli#11814)",
    "google",
    {
      messages: [
        { role: "user", content: "go" },
        { role: "assistant", content: "I look." },
        { role: "assistant", content: [use] },
        { role: "user", content: [result("seen")] },
      ],
    },
  ],
  [
    "a conversation without a text of the user (vllm-project/vllm#36432, langgenius/dify#33152)",
    "vllm",
    {
      messages: [
        { role: "assistant", content: [use] },
        { role: "user", content: [result("seen")] },
      ],
    },
  ],
  [
    "calls without a text (lmstudio-ai/lmstudio-bug-tracker#261, pydantic/pydantic-ai#5206)",
    "lmstudio",
    { ...tools("messages", ["look", { type: "object" }]), ...turns("go", [use], [result("seen")]) },
  ],
  [
    "calls whose reasoning is gone (mastra-ai/mastra#12592, continuedev/continue#11600)",
    "kimi",
    { ...tools("messages", ["look", { type: "object" }]), ...turns("go", [use], [result("seen")]) },
  ],
  [
    "a type beside a choice (MoonshotAI/kimi-code#2661, openclaw/openclaw#113130)",
    "kimi",
    tools("messages", ["look", schemaOf({ type: ["string", "array"], anyOf: [{ type: "string" }, { items: {} }] })]),
  ],
  [
    "a forced tool (can1357/oh-my-pi#1077, HKUDS/nanobot#3939)",
    "kimi",
    { ...tools("messages", ["look", { type: "object" }]), tool_choice: { type: "any" }, thinking: { type: "adaptive" } },
  ],
  [
    "a forced tool (deepseek-ai/DeepSeek-V3#1376, BerriAI/litellm#37470)",
    "deepseek",
    { ...tools("messages", ["look", { type: "object" }]), tool_choice: { type: "tool", name: "look" } },
  ],
  [
    "a schema of the answer (BerriAI/litellm#7580, llm-exe/llm-exe#662)",
    "deepseek",
    { output_config: { format: { type: "json_schema", schema: answerSchema } } },
  ],
  ["the beginning of the answer (crewAIInc/crewAI#2194, huggingface/smolagents#757)", "mistral", turns("a list", "1.")],
  [
    "neighbours of one role, and the beginning of the answer (perplexityai/api-discussion#265, pipecat-ai/pipecat#4009)",
    "perplexity",
    {
      system: "Be brief.",
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: "b" },
        { role: "assistant", content: "1." },
      ],
    },
  ],
  [
    "the name of a forced tool (lmstudio-ai/lmstudio-bug-tracker#670)",
    "lmstudio",
    { ...tools("messages", ["look", { type: "object" }]), tool_choice: { type: "tool", name: "look" } },
  ],
  [
    "reasoning of earlier turns (Kilo-Org/kilocode#10375, QwenLM/qwen-code#11045)",
    "cerebras",
    turns(
      "go",
      [
        { type: "thinking", thinking: "hm", signature: "" },
        { type: "text", text: "done" },
      ],
      "and?",
    ),
  ],
  ["many images of 3,000 pixels (anthropics/claude-code#49720)", "anthropic", turns(Array.from({ length: 21 }, () => picture))],
  [
    "an answer's schema with free objects and bounds (BerriAI/litellm#35808, ax-llm/ax#458)",
    "anthropic",
    { response_format: { type: "json_schema", json_schema: { name: "a", schema: answerSchema } } },
  ],
];

describe("what vendors refused in public reports is accepted after its conversion", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const providers = Object.keys(TYPES).map((type) => {
      const protocol: Protocol = type === "anthropic" ? "messages" : "chat-completions";
      return { protocol, upstream, id: type, type };
    });
    proxy = await startProxy({ providers });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const ask = async (type: string, fields: object) => {
    const caller = CALLERS[type === "anthropic" ? "chat-completions" : "messages"];
    upstream.answerAll(refusingModel(TYPES[type]!));
    const token = await proxy.token(type);
    const reply = await proxy.post(caller.path, caller.request("hello", fields), { authorization: `Bearer ${token}` });
    return {
      reply: [reply.status, await reply.text()],
      requests: upstream.requests.length,
      dropped: reply.headers["x-portico-dropped"],
    };
  };
  const sent = async () => JSON.parse(await (await upstream.request()).text());

  it.each(REFUSED)("%s: %s", async (_, type, fields) => {
    expect(await ask(type, fields)).toMatchObject({ reply: [200, expect.any(String)], requests: 1 });
  });

  it("of two tools of one name the first stays, and the header says so", async () => {
    const { dropped } = await ask(
      "anthropic",
      tools("chat-completions", ["look", { type: "object", title: "first" }], ["look", { type: "object" }]),
    );
    expect([(await sent()).tools.map((tool: any) => tool.input_schema.title), dropped]).toEqual([["first"], "tools"]);
  });

  it("of many cache marks the first and the last three stay", async () => {
    const { dropped } = await ask(
      "anthropic",
      turns([marked("a"), marked("b"), marked("c")], [marked("d")], [marked("e"), marked("f")]),
    );
    const blocks = (await sent()).messages.flatMap(({ content }: any) => content);
    expect(blocks.filter((block: any) => block.cache_control).map((block: any) => block.text)).toEqual(["a", "d", "e", "f"]);
    expect(dropped).toBe("cache_control");
  });

  it("tools that only the conversation names cannot be called", async () => {
    const messages = [
      { role: "user", content: "go" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "seen" },
    ];
    await ask("anthropic", { messages });
    expect(await sent()).toMatchObject({ tools: [{ name: "look" }], tool_choice: { type: "none" } });
  });

  it("bounds of an answer's schema become words of the description", async () => {
    await ask("anthropic", { response_format: { type: "json_schema", json_schema: { name: "a", schema: answerSchema } } });
    expect((await sent()).output_config.format.schema).toEqual({
      type: "object",
      properties: {
        age: { type: "integer", description: "minimum: 1" },
        more: { type: "object", additionalProperties: false },
      },
      additionalProperties: false,
    });
  });

  it("a schema for Gemini has the bounds, the values and the referred parts that Gemini knows", async () => {
    const schema = {
      type: "object",
      $defs: { depth: { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 9 } },
      properties: {
        depth: { $ref: "#/$defs/depth", description: "How deep" },
        kind: { oneOf: [{ const: "a" }, { const: "b" }] },
        text: { type: ["string", "null"], format: "uri", enum: ["", "x"] },
        list: { type: "array" },
      },
      required: ["depth"],
      additionalProperties: false,
    };
    await ask("google", tools("messages", ["look", schema]));
    expect((await sent()).tools[0].function.parameters).toEqual({
      type: "object",
      properties: {
        depth: { type: "integer", minimum: 1, maximum: 8, description: "How deep" },
        kind: {
          anyOf: [
            { type: "string", enum: ["a"] },
            { type: "string", enum: ["b"] },
          ],
        },
        text: { type: "string", nullable: true, enum: ["x"] },
        list: { type: "array", items: { type: "string" } },
      },
      required: ["depth"],
    });
  });

  it.each([
    ["deepseek", { thinking: { type: "disabled" } }],
    ["kimi", { thinking: { type: "disabled" } }],
  ])("thinking that the caller turns off is turned off for %s, which thinks without being asked", async (type, off) => {
    const { dropped } = await ask(type, { thinking: { type: "disabled" } });
    expect([await sent(), dropped]).toEqual([expect.objectContaining(off), undefined]);
  });

  it("a name that begins with a digit becomes one that begins with a letter (kaitranntt/ccs#25, MoonshotAI/kimi-cli#1773)", async () => {
    await ask("openai", tools("messages", ["1password_read", { type: "object" }]));
    expect((await sent()).tools[0].function.name).toMatch(/^tool_1password_read_[0-9a-f]{8}$/);
  });
});
