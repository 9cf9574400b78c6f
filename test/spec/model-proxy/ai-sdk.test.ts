import { resolve } from "node:path";
import { Readable } from "node:stream";
import { createAnthropic } from "@ai-sdk/anthropic";
import { aiSdk, type AiSdkOptions } from "@portico/adapters/models/ai-sdk";
import { Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { CALLERS, PROTOCOLS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { collectMessagesStream } from "../../harness/messages-stream-grammar.ts";
import { PROVIDER_KEY, startProxy } from "../../harness/proxy-app.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json } from "../../harness/upstream-answers.ts";
import { root } from "../../rooms/repository.ts";

/** Where the packages of these tests are installed. */
const FOLDER = resolve(root, "adapters");
const KEY = new Secret(PROVIDER_KEY);

const PACKAGES = {
  "@ai-sdk/anthropic": { create: "createAnthropic", options: {} },
  "@ai-sdk/openai-compatible": { create: "createOpenAICompatible", options: { name: "chat", includeUsage: true } },
} as const;

function proxyOf(options: Omit<AiSdkOptions, "id" | "models"> & { readonly models?: readonly string[] }) {
  const adapter = aiSdk({ id: "sdk", models: ["echo-large"], ...options });
  return startProxy({ providers: [{ protocol: "own", id: "sdk", adapter }] });
}

function proxyTo(upstream: FakeUpstream, name: keyof typeof PACKAGES, more: Partial<AiSdkOptions> = {}) {
  const { create, options } = PACKAGES[name];
  return proxyOf({
    provider: name,
    create,
    options: { ...options, baseURL: upstream.baseUrl },
    credential: KEY,
    folder: FOLDER,
    ...more,
  });
}

const MESSAGE = { model: "echo-large", max_tokens: 100, messages: [{ role: "user", content: "hello" }] };
const LOOK = { name: "look", description: "Looks", input_schema: { type: "object", properties: { at: { type: "string" } } } };
const PNG = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };

describe.each(Object.keys(PACKAGES) as (keyof typeof PACKAGES)[])("the installed package %s", (name) => {
  it.each(PROTOCOLS.flatMap((protocol) => [true, false].map((stream) => [protocol, stream] as const)))(
    "answers callers of %s (stream: %s)",
    async (protocol, stream) => {
      await using upstream = await startFakeUpstream();
      await using proxy = await proxyTo(upstream, name);
      const caller = CALLERS[protocol];
      const answer = await proxy.post(caller.path, caller.request("say this back", { stream }));
      expect(answer.status).toBe(200);
      const text = await answer.text();
      if (stream) caller.assertStream(text);
      else expect(caller.textOf(JSON.parse(text))).toContain("say this back");
    },
  );

  it.each([true, false])("carries tools, their choice and their results (stream: %s)", async (stream) => {
    await using upstream = await startFakeUpstream();
    await using proxy = await proxyTo(upstream, name);
    const asking = { ...MESSAGE, stream, tools: [LOOK], tool_choice: { type: "tool", name: "look" } };
    const answer = await proxy.post("/v1/messages", asking);
    const text = await answer.text();
    const { content } = stream ? collectMessagesStream(text) : (JSON.parse(text) as { content: any[] });
    const call = content.find(({ type }: any) => type === "tool_use") as any;
    expect(call).toMatchObject({ name: "look" });
    const results = [{ type: "tool_result", tool_use_id: call.id, is_error: true, content: "It is dark" }];
    const next = await proxy.post("/v1/messages", {
      ...MESSAGE,
      tools: [LOOK],
      messages: [...MESSAGE.messages, { role: "assistant", content }, { role: "user", content: results }],
    });
    expect(next.status).toBe(200);
    const sent = await (await upstream.request(2)).text();
    expect(sent).toContain("It is dark");
    expect(sent).toContain('"look"');
  });

  it("carries images, and refuses addresses that the model does not read", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await proxyTo(upstream, name);
    const asking = (source: object) =>
      proxy.post("/v1/messages", { ...MESSAGE, messages: [{ role: "user", content: [{ type: "image", source }] }] });
    expect((await asking(PNG)).status).toBe(200);
    expect(await (await upstream.request()).text()).toContain(PNG.data);
    const local = await asking({ type: "url", url: "ftp://10.0.0.1/secret.png" });
    expect([local.status, upstream.requests.length]).toEqual([400, 1]);
  });

  it("refuses with the status, the words and the time to wait of the vendor, without the key", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await proxyTo(upstream, name);
    const error = { type: "rate_limit_error", message: `The key ${PROVIDER_KEY} made too many calls` };
    for (const stream of [true, false]) {
      upstream.answerNext(json(429, { type: "error", error }, { "retry-after": "7" }));
      const answer = await proxy.post("/v1/messages", { ...MESSAGE, stream });
      expect([answer.status, answer.headers["retry-after"]]).toEqual([429, "7"]);
      const text = await answer.text();
      expect(text).toContain("made too many calls");
      expect(text).not.toContain(PROVIDER_KEY);
    }
  });

  it("is unreachable when it is, and its address is not told", async () => {
    const upstream = await startFakeUpstream();
    await using proxy = await proxyTo(upstream, name);
    await upstream.close();
    const answer = await proxy.post("/v1/messages", MESSAGE);
    expect(answer.status).toBe(502);
    expect(await answer.text()).not.toContain(new URL(upstream.baseUrl).host);
  });

  it("ends the vendor's call when its caller leaves", async () => {
    await using upstream = await startFakeUpstream();
    const { create, options } = PACKAGES[name];
    const { port, close } = await openAdapter(
      aiSdk({
        id: "sdk",
        models: ["echo-large"],
        provider: name,
        create,
        options: { ...options, baseURL: upstream.baseUrl },
        folder: FOLDER,
        credential: KEY,
      }),
    );
    upstream.answerNext(events([messagesEvents("hello")[0]!, ({ over }) => over]));
    const leaving = new AbortController();
    const body = Buffer.from(JSON.stringify({ ...MESSAGE, stream: true }));
    const sending = port.send({ headers: {}, query: "", body }, leaving.signal).catch((error: unknown) => error);
    const request = await upstream.request();
    await request.bytes();
    const reason = new Error("the caller left");
    leaving.abort(reason);
    expect(await sending).toBe(reason);
    expect(await request.outcome).toBe("aborted");
    await close();
  });
});

describe("the installed package @ai-sdk/anthropic", () => {
  it.each([true, false])("gets its signed thinking back (stream: %s)", async (stream) => {
    await using upstream = await startFakeUpstream();
    await using proxy = await proxyTo(upstream, "@ai-sdk/anthropic");
    const asking = { ...MESSAGE, max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 2_048 }, stream };
    const text = await (await proxy.post("/v1/messages", asking)).text();
    const { content } = stream ? collectMessagesStream(text) : (JSON.parse(text) as { content: any[] });
    expect(content[0]).toMatchObject({ type: "thinking", signature: expect.stringMatching(/^ai-sdk\./) });
    const turns = [...MESSAGE.messages, { role: "assistant", content }, { role: "user", content: "go on" }];
    const next = await proxy.post("/v1/messages", { ...MESSAGE, messages: turns });
    expect(next.status).toBe(200);
    const { messages } = (await (await upstream.request(2)).json()) as { messages: { content: any[] }[] };
    expect(messages[1]!.content[0]).toMatchObject({ type: "thinking", signature: "c2lnbmVk" });
  });

  it("leaves out thinking that another provider signed, and says so", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await proxyTo(upstream, "@ai-sdk/anthropic");
    const thought = { type: "thinking", thinking: "Hm", signature: "of-another" };
    const turns = [
      ...MESSAGE.messages,
      { role: "assistant", content: [thought, { type: "text", text: "Hi" }] },
      { role: "user", content: "go on" },
    ];
    const answer = await proxy.post("/v1/messages", { ...MESSAGE, messages: turns });
    expect([answer.status, answer.headers["x-portico-dropped"]]).toEqual([200, "messages.content.thinking"]);
    expect(await (await upstream.request()).text()).not.toContain("of-another");
  });
});

/** A model that a host wrote. */
const modelOf = (specificationVersion: string, parts: readonly object[]) => {
  const asked: any[] = [];
  const doStream = async (options: object) => {
    asked.push(options);
    return { stream: Readable.toWeb(Readable.from(parts)) };
  };
  const doGenerate = async (options: object) => {
    asked.push(options);
    const content = parts.filter(({ type }: any) => type === "text" || type === "tool-call");
    return { ...(parts.at(-1) as object), content, warnings: [] };
  };
  const model = { specificationVersion, provider: "hand", modelId: "echo-large", supportedUrls: {}, doStream, doGenerate };
  return { asked, provider: () => model as never };
};
const FINISH = {
  v2: { type: "finish", finishReason: "stop", usage: { inputTokens: 10, outputTokens: 5, cachedInputTokens: 4 } },
  v4: {
    type: "finish",
    finishReason: { unified: "stop", raw: "stop" },
    usage: { inputTokens: { total: 10, noCache: 6, cacheRead: 4 }, outputTokens: { total: 5, reasoning: 2 } },
  },
};

describe("a model that a host wrote", () => {
  it.each([
    ["v2", FINISH.v2],
    ["v3", FINISH.v4],
    ["v4", FINISH.v4],
  ])("is served with the specification version %s", async (version, finish) => {
    const { asked, provider } = modelOf(version, [
      { type: "stream-start", warnings: [{ type: "unsupported", feature: "topK" }] },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Hello" },
      { type: "text-end", id: "1" },
      {
        type: "tool-call",
        toolCallId: "c1",
        toolName: "look",
        input: '{"at":"tea"}',
        providerMetadata: { hand: { sign: "s1" } },
      },
      finish,
    ]);
    await using proxy = await proxyOf({ provider });
    const answer = await proxy.post("/v1/messages", { ...MESSAGE, stream: true, top_k: 3, tools: [LOOK] });
    expect(answer.headers["x-portico-dropped"]).toBe("top_k");
    const { content, usage } = collectMessagesStream(await answer.text());
    expect(content).toMatchObject([
      { type: "text", text: "Hello" },
      { type: "tool_use", name: "look", input: { at: "tea" } },
    ]);
    expect(usage).toMatchObject({ input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 5 });
    const turns = [
      ...MESSAGE.messages,
      { role: "assistant", content },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: (content[1] as any).id, content: [{ type: "image", source: PNG }] }],
      },
    ];
    expect((await proxy.post("/v1/messages", { ...MESSAGE, stream: true, messages: turns })).status).toBe(200);
    const [, called, result] = asked[1].prompt;
    expect(called.content[1]).toMatchObject({ toolCallId: "c1", providerOptions: { hand: { sign: "s1" } } });
    const file = { v2: { type: "media", data: PNG.data }, v3: { type: "file-data", data: PNG.data } }[version];
    expect(result).toMatchObject({
      role: "tool",
      content: [
        {
          toolCallId: "c1",
          toolName: "look",
          output: {
            type: "content",
            value: [{ mediaType: "image/png", ...(file ?? { type: "file", data: { type: "data", data: PNG.data } }) }],
          },
        },
      ],
    });
  });

  const INPUT = '{"at":"tea","why":"thirst"}';
  const calling = (metadata?: object) => [
    { type: "tool-input-start", id: "c1", toolName: "look" },
    { type: "tool-input-delta", id: "c1", delta: INPUT.slice(0, 8) },
    { type: "tool-input-delta", id: "c1", delta: INPUT.slice(8) },
    { type: "tool-input-end", id: "c1" },
    { type: "tool-call", toolCallId: "c1", toolName: "look", input: INPUT, ...(metadata && { providerMetadata: metadata }) },
    { type: "tool-input-start", id: "c2", toolName: "look" },
    { type: "tool-input-end", id: "c2" },
    { type: "tool-call", toolCallId: "c2", toolName: "look", input: "{}" },
    FINISH.v4,
  ];
  const deltasOf = (text: string) =>
    [...text.matchAll(/"partial_json":("(?:[^"\\]|\\.)*")/g)].map(([, json]) => JSON.parse(json!));

  it("tells calls of tools in pieces, once a complete call of the model has shown that nothing comes with its end", async () => {
    await using proxy = await proxyOf({ provider: modelOf("v4", calling()).provider });
    const told: string[][] = [];
    // Each process learns it for itself.
    while (told.length < 8 && told.at(-1)?.length !== 2) {
      const text = await (await proxy.post("/v1/messages", { ...MESSAGE, stream: true, tools: [LOOK] })).text();
      expect(collectMessagesStream(text).content).toMatchObject([{ input: JSON.parse(INPUT) }, { input: {} }]);
      told.push(deltasOf(text).filter((delta) => delta !== "{}"));
    }
    expect([told[0], told.at(-1)]).toEqual([[INPUT], [INPUT.slice(0, 8), INPUT.slice(8)]]);
  });

  it("tells calls of tools whole, if something that the provider needs back comes with their end", async () => {
    const { asked, provider } = modelOf("v4", calling({ hand: { sign: "s1" } }));
    await using proxy = await proxyOf({ provider });
    for (let call = 1; call <= 2; call++) {
      const text = await (await proxy.post("/v1/messages", { ...MESSAGE, stream: true, tools: [LOOK] })).text();
      expect(deltasOf(text)[0]).toBe(INPUT);
      const { content } = collectMessagesStream(text);
      const results = content.map(({ id }: any) => ({ type: "tool_result", tool_use_id: id, content: "seen" }));
      const turns = [...MESSAGE.messages, { role: "assistant", content }, { role: "user", content: results }];
      await proxy.post("/v1/messages", { ...MESSAGE, stream: true, messages: turns });
      expect(asked.at(-1).prompt[1].content[0]).toMatchObject({ toolCallId: "c1", providerOptions: { hand: { sign: "s1" } } });
    }
  });

  it.each([
    ["without its last part", []],
    ["with the reason `interrupted`", [{ ...FINISH.v4, finishReason: { unified: "interrupted", raw: undefined } }]],
    ["with the reason `unknown` of version 2", [{ ...FINISH.v2, finishReason: "unknown" }]],
    ["with an error", [{ type: "error", error: { error: { message: "It broke", type: "server_error" } } }]],
  ])("whose stream ends %s has failed", async (_how, end) => {
    const { provider } = modelOf("v4", [{ type: "text-delta", id: "1", delta: "Hello" }, ...end]);
    await using proxy = await proxyOf({ provider });
    const text = await (await proxy.post("/v1/messages", { ...MESSAGE, stream: true })).text();
    expect(text).not.toContain("message_stop");
    expect(text).toContain("event: error");
  });

  it("gets the effort and the schema of the answer", async () => {
    const { asked, provider } = modelOf("v4", [{ type: "text", text: "{}" }, FINISH.v4]);
    await using proxy = await proxyOf({ provider, providerOptions: { hand: { store: false } } });
    const format = { type: "json_schema", schema: { type: "object" } };
    const asking = { ...MESSAGE, thinking: { type: "adaptive" }, output_config: { effort: "low", format } };
    expect((await proxy.post("/v1/messages", asking)).status).toBe(200);
    expect(asked[0]).toMatchObject({
      reasoning: "low",
      responseFormat: { type: "json", schema: { type: "object" } },
      providerOptions: { hand: { store: false } },
    });
  });

  it("may be a provider that the host created", async () => {
    await using upstream = await startFakeUpstream();
    const provider = createAnthropic({ baseURL: upstream.baseUrl, apiKey: PROVIDER_KEY });
    await using proxy = await proxyOf({ provider: provider as never });
    expect((await proxy.post("/v1/messages", MESSAGE)).status).toBe(200);
  });
});

describe("a package that cannot be served is refused at the start", () => {
  const opening = (options: Partial<AiSdkOptions>) =>
    openAdapter(aiSdk({ id: "sdk", models: ["m"], provider: "x", folder: FOLDER, ...options }));

  it.each([
    [
      "that is not installed",
      { provider: "@ai-sdk/absent" },
      'the package @ai-sdk/absent is not installed. Run "npm install @ai-sdk/absent"',
    ],
    ["that has no provider", { provider: "valibot" }, '"create" must name'],
    ["that is a path", { provider: "../../etc" }, '"package" must be the name of a package'],
  ])("%s", async (_which, options, message) => {
    await expect(opening(options)).rejects.toThrow(message);
  });

  it("whose models have another specification", async () => {
    const { provider } = modelOf("v9", []);
    await expect(opening({ provider })).rejects.toThrow("specification has version v9; v2, v3, v4 can be served");
  });
});
