import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { refusalOf, refusingModel, type Vendor } from "../../harness/vendor-refusals.ts";
import { events, json } from "../../harness/upstream-answers.ts";

const LONG = `mcp__a-server-with-a-long-name__${"and_a_tool_with_a_long_name_".repeat(3)}`;
const OTHER = `${LONG}2`;

/** A tool whose schema has a choice at its top. */
const CHOICE = {
  type: "object",
  properties: { id: { type: "string" } },
  required: ["id"],
  anyOf: [
    { properties: { page: { type: "string" }, depth: { type: "integer" } }, required: ["page", "depth"] },
    { properties: { database: { type: "string" }, depth: { type: "integer" } }, required: ["database", "depth"] },
  ],
};

/** A conversation with everything that vendors refuse: each is what coding tools and models send. */
const CONVERSATION = {
  system: "Be brief.",
  metadata: { user_id: "user-1" },
  tools: [LONG, OTHER, "search"].map((name) => ({ name, input_schema: name === "search" ? CHOICE : { type: "object" } })),
  messages: [
    { role: "user", content: `cut \ud83d here` },
    {
      role: "assistant",
      content: [
        { type: "tool_use", id: "functions.search:0", name: LONG, input: {} },
        { type: "tool_use", id: "functions.search:0", name: "functions.search web", input: {} },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "functions.search:0", content: "first" },
        { type: "tool_result", tool_use_id: "functions.search:0", content: "second" },
        { type: "text", text: "and now?" },
      ],
    },
    { role: "system", content: "From now on, answer in French." },
    { role: "user", content: "go on" },
    { role: "assistant", content: [{ type: "tool_use", id: "functions.search:0", name: "search", input: { id: "1" } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "functions.search:0", content: "third" }] },
  ],
};

describe("a conversation that vendors refuse as it is", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  const TYPES: Readonly<Record<string, Vendor>> = {
    any: "openai",
    mistral: "mistral",
    deepseek: "deepseek",
    google: "google",
    vllm: "template",
    ollama: "template",
  };

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const chat = Object.keys(TYPES).map((type) => ({ protocol: "chat-completions", upstream, id: type, type }) as const);
    proxy = await startProxy({ providers: [...chat, { protocol: "messages", upstream, id: "anthropic", type: "anthropic" }] });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const send = async (provider: string, path: string, body: object) => {
    const reply = await proxy.post(path, body, { authorization: `Bearer ${await proxy.token(provider)}` });
    return { status: reply.status, text: await reply.text() };
  };
  const sent = async () => JSON.parse(await (await upstream.request()).text());

  it.each(Object.keys(TYPES))("is accepted by %s, from a caller of Messages", async (type) => {
    upstream.answerAll(refusingModel(TYPES[type]!));
    const { status, text } = await send(type, "/v1/messages", CALLERS.messages.request("", CONVERSATION));
    expect([status, text]).toEqual([200, expect.any(String)]);
  });

  it.each([false, true])("the caller's names of tools stand in the answer (stream: %s)", async (stream) => {
    await send("any", "/v1/messages", CALLERS.messages.request("", CONVERSATION));
    const [short, other] = (await sent()).tools.map((tool: any) => tool.function.name);
    expect([short, other]).toEqual([expect.stringMatching(/^mcp__a-server/), expect.stringMatching(/^mcp__a-server/)]);
    expect([short.length, other.length]).toEqual([64, 64]);
    expect(short).not.toBe(other);
    const call = { index: 0, id: "call_1", type: "function", function: { name: short, arguments: "{}" } };
    upstream.answerNext(
      json(200, { choices: [{ index: 0, message: { role: "assistant", tool_calls: [call] }, finish_reason: "tool_calls" }] }),
    );
    const { text } = await send("any", "/v1/messages", CALLERS.messages.request("", { ...CONVERSATION, stream }));
    expect(text).toContain(`"name":"${LONG}"`);
  });

  it("a forced tool has the name that is sent", async () => {
    await send(
      "any",
      "/v1/messages",
      CALLERS.messages.request("", { ...CONVERSATION, tool_choice: { type: "tool", name: LONG } }),
    );
    const { tools, tool_choice: choice } = await sent();
    expect(choice.function.name).toBe(tools[0].function.name);
  });

  it.each([false, true])("a signature of a call comes back to its provider, and to no other (stream: %s)", async (stream) => {
    const signature = "signed/+==é";
    const extra = { extra_content: { google: { thought_signature: signature } } };
    const calls = ["a", "b"].map((id, index) => ({
      ...{ index, id, type: "function", function: { name: "search", arguments: "{}" } },
      ...(index === 0 && extra),
    }));
    const choice = { index: 0, finish_reason: "tool_calls" };
    const message = { role: "assistant", content: null, tool_calls: calls };
    upstream.answerNext(
      stream
        ? events([`data: ${JSON.stringify({ choices: [{ ...choice, delta: message }] })}\n\n`, "data: [DONE]\n\n"])
        : json(200, { choices: [{ ...choice, message }] }),
    );
    const ask = CALLERS.messages.request("go", { stream });
    const { text } = await send("google", "/v1/messages", ask);
    const ids = [...text.matchAll(/"type":"tool_use","id":"([\w-]+)"/g)].map(([, id]) => id!);
    expect(ids).toEqual([expect.stringMatching(/^a-thought-/), "b"]);
    const messages = [
      { role: "user", content: "go" },
      { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "search", input: {} })) },
      { role: "user", content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "found" })) },
    ];
    for (const type of ["google", "mistral"]) {
      upstream.reset();
      upstream.answerAll(refusingModel(TYPES[type]!));
      expect((await send(type, "/v1/messages", CALLERS.messages.request("", { messages }))).status).toBe(200);
      const [{ extra_content: sentExtra }] = (await sent()).messages[1].tool_calls;
      expect(sentExtra).toEqual(type === "google" ? extra.extra_content : undefined);
    }
  });

  it("results stay with their calls, although the model repeated the id", async () => {
    await send("mistral", "/v1/messages", CALLERS.messages.request("", CONVERSATION));
    const { messages } = await sent();
    const ids = messages.flatMap((message: any) => (message.tool_calls ?? []).map((each: any) => each.id));
    const results = messages.flatMap((message: any) =>
      message.role === "tool" ? [[message.tool_call_id, message.content]] : [],
    );
    expect(results).toEqual([
      [ids[0], "first"],
      [ids[1], "second"],
      [ids[2], "third"],
    ]);
  });

  it("the result of a call stays with it, although an earlier call of the same id has none", async () => {
    const use = { type: "tool_use", id: "call_1", name: "search", input: {} };
    const messages = [
      { role: "user", content: "go" },
      { role: "assistant", content: [use] },
      { role: "user", content: "never mind" },
      { role: "assistant", content: [use] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "found" }] },
    ];
    await send("any", "/v1/messages", CALLERS.messages.request("", { messages }));
    const body = (await sent()).messages;
    expect(body[4]).toEqual({ role: "tool", tool_call_id: body[3].tool_calls[0].id, content: "found" });
    expect(body[3].tool_calls[0].id).not.toBe(body[1].tool_calls[0].id);
  });

  it("the same conversation is always written in the same way, so that caches of prefixes hold", async () => {
    const texts: string[] = [];
    for (const more of [[], [{ role: "user", content: "more" }]]) {
      upstream.reset();
      await send(
        "mistral",
        "/v1/messages",
        CALLERS.messages.request("", { ...CONVERSATION, messages: [...CONVERSATION.messages, ...more] }),
      );
      texts.push(JSON.stringify((await sent()).messages).slice(0, -1));
    }
    expect(texts[1]).toContain(texts[0]);
  });

  it("a later instruction of the system is told to strict templates in its place, as marked text of the user", async () => {
    await send("vllm", "/v1/messages", CALLERS.messages.request("", CONVERSATION));
    const { messages } = await sent();
    expect(messages.filter(({ role }: any) => role === "system")).toHaveLength(1);
    expect(messages).toContainEqual({
      role: "user",
      content: "and now?\n\n<system>\nFrom now on, answer in French.\n</system>\n\ngo on",
    });
  });

  it("images stay where neighbours of one role become one message", async () => {
    const image = { type: "image", source: { type: "url", url: "https://example.com/a.png" } };
    const messages = [
      { role: "user", content: [{ type: "text", text: "look" }, image] },
      { role: "user", content: "what is it?" },
    ];
    await send("vllm", "/v1/messages", CALLERS.messages.request("", { messages }));
    expect((await sent()).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: "https://example.com/a.png" } },
          { type: "text", text: "what is it?" },
        ],
      },
    ]);
  });

  it("a schema keeps the properties of all branches, and requires what each of them requires", async () => {
    await send("any", "/v1/messages", CALLERS.messages.request("", CONVERSATION));
    const { parameters } = (await sent()).tools[2].function;
    expect(Object.keys(parameters.properties).sort()).toEqual(["database", "depth", "id", "page"]);
    expect([...parameters.required].sort()).toEqual(["depth", "id"]);
  });

  it("is accepted by a provider of Messages, from a caller of Chat Completions", async () => {
    upstream.answerAll(refusingModel("anthropic"));
    const call = (name: string) => ({ id: "call_1", type: "function", function: { name, arguments: "{}" } });
    const body = CALLERS["chat-completions"].request("", {
      tools: [{ type: "function", function: { name: "search", parameters: CHOICE } }],
      messages: [
        { role: "user", content: "cut \ud83d here" },
        { role: "assistant", content: null, tool_calls: [call("functions.search web"), call("search")] },
        { role: "tool", tool_call_id: "call_1", content: "first" },
        { role: "tool", tool_call_id: "call_1", content: "second" },
        { role: "assistant", content: null, tool_calls: [call("search")] },
        { role: "tool", tool_call_id: "call_1", content: "third" },
      ],
    });
    const { status, text } = await send("anthropic", "/v1/chat/completions", body);
    expect([status, text]).toEqual([200, expect.any(String)]);
    const contents = (await sent()).messages.flatMap(({ content }: any) => content);
    const uses = contents.filter(({ type }: any) => type === "tool_use").map(({ id }: any) => id);
    const results = contents
      .filter(({ type }: any) => type === "tool_result")
      .map((each: any) => [each.tool_use_id, each.content]);
    expect(results).toEqual([
      [uses[0], "first"],
      [uses[1], "second"],
      [uses[2], "third"],
    ]);
  });

  it("in the provider's own protocol passes byte for byte", async () => {
    const body = JSON.stringify(CALLERS.messages.request("", CONVERSATION));
    await proxy.post("/v1/messages", body, { authorization: `Bearer ${await proxy.token("anthropic")}` });
    expect(await (await upstream.request()).text()).toBe(body);
    expect(refusalOf("anthropic", body)).toBeDefined();
  });
});
