import { createManualClock } from "@portico/adapters/clock/manual";
import { azure, type AzureOptions } from "@portico/adapters/models/azure";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { entraToken } from "@portico/clouds/models/entra-token";
import { Secret } from "@portico/core";
import { AzureOpenAI } from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError, PROTOCOLS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { events, json } from "../../harness/upstream-answers.ts";

const KEY = "azure-key-0123456789abcdef";
const SAFE = { hate: { filtered: false, severity: "safe" } };

let upstream: FakeUpstream;
let origin: string;
beforeEach(async () => {
  upstream = await startFakeUpstream();
  origin = new URL(upstream.baseUrl).origin;
  upstream.answerAll(json(200, completion("Hello")));
});
afterEach(() => upstream.close());

const startWith = (more: Partial<AzureOptions> = {}) => {
  const options = { id: "azure", type: "azure", baseUrl: origin, credential: new Secret(KEY), models: ["my-gpt", "gpt 5/eu"] };
  return startProxy({ providers: [{ protocol: "own", id: "azure", adapter: azure({ ...options, ...more }) }] });
};

describe.each(PROTOCOLS)("a provider of the protocol azure, for callers of %s", (protocol) => {
  const caller = CALLERS[protocol];
  const ask = (more: object = {}) => caller.request("hi", { model: "my-gpt", ...more });

  it("calls /openai/v1 with its key", async () => {
    await using proxy = await startWith();
    expect(caller.textOf(await (await proxy.post(caller.path, ask())).json())).toBe("Hello");
    const { url, headers } = await upstream.request();
    expect([url, headers["api-key"], headers.authorization]).toEqual(["/openai/v1/chat/completions", KEY, undefined]);
  });

  it("reads a stream with notes of the content filter, before, between and after the text (microsoft/autogen#6465, langchain-ai/langchain#18977)", async () => {
    await using proxy = await startWith();
    upstream.answerNext(
      events([
        chunk({
          id: "",
          model: "",
          object: "",
          created: 0,
          choices: [],
          prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }],
        }),
        chunk({
          choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null, content_filter_results: {} }],
        }),
        chunk({ choices: [{ index: 0, delta: { content: "Hello" }, finish_reason: null, content_filter_results: SAFE }] }),
        chunk({
          ...{ id: "", model: "", object: "", created: 0, usage: null },
          choices: [
            {
              index: 0,
              finish_reason: null,
              content_filter_results: SAFE,
              content_filter_offsets: { check_offset: 44, start_offset: 44, end_offset: 198 },
            },
          ],
        }),
        chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop", content_filter_results: {} }] }),
        "data: [DONE]\n\n",
      ]),
    );
    const text = await (await proxy.post(caller.path, ask({ stream: true }))).text();
    if (protocol === "messages") caller.assertStream(text);
    expect(text).toContain("Hello");
  });

  it("gives the message of a prompt that the content filter refused", async () => {
    await using proxy = await startWith();
    const message = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.";
    upstream.answerNext(
      json(400, {
        error: {
          message,
          type: null,
          param: "prompt",
          code: "content_filter",
          status: 400,
          innererror: { code: "ResponsibleAIPolicyViolation" },
        },
      }),
    );
    const reply = await proxy.post(caller.path, ask());
    expect([reply.status, ((await reply.json()) as { error: { message: string } }).error.message]).toEqual([400, message]);
  });
});

describe("a provider of the protocol azure", () => {
  const { path, request } = CALLERS["chat-completions"];

  it.each(["", "/", "/openai", "/openai/v1", "/openai/v1/"])(
    "takes the address of its resource with %j at its end",
    async (end) => {
      await using proxy = await startWith({ baseUrl: origin + end });
      expect((await proxy.post(path, request("hi", { model: "my-gpt" }))).status).toBe(200);
      expect((await upstream.request()).url).toBe("/openai/v1/chat/completions");
    },
  );

  it.each(["my-gpt", "gpt 5/eu"])("sends what the vendor's library sends to the address of the deployment %s", async (model) => {
    const body = { model, messages: [{ role: "user" as const, content: "hi" }], seed: 7 };
    await new AzureOpenAI({ endpoint: origin, apiKey: KEY, apiVersion: "2024-10-21" }).chat.completions.create(body);
    await using proxy = await startWith({ apiVersion: "2024-10-21" });
    expect((await proxy.post(path, body)).status).toBe(200);
    const [theirs, ours] = await Promise.all(
      upstream.requests.map(async (each) => [each.method, each.url, each.headers["api-key"], await each.json()]),
    );
    expect(ours).toEqual(theirs);
  });

  const MESSAGES = CALLERS.messages;
  const tool = { name: "look", input_schema: { type: "object" } };

  it("knows the model of a deployment by its `id`, if the deployment's name says nothing", async () => {
    const models = [
      { id: "gpt-5.4", upstream: "chat-prod" },
      { id: "mine", upstream: "gpt-5.4-eu" },
      { id: "other", upstream: "chat-prod" },
    ];
    await using proxy = await startWith({ models });
    for (const { id } of models)
      await proxy.post(
        MESSAGES.path,
        MESSAGES.request("hi", { model: id, temperature: 0.5, tools: [tool], thinking: { type: "adaptive" } }),
      );
    const sent = await Promise.all(upstream.requests.map(async (each) => JSON.parse(await each.text())));
    expect(sent.map((body) => [body.model, body.temperature, body.reasoning_effort])).toEqual([
      ["chat-prod", undefined, undefined],
      ["gpt-5.4-eu", undefined, undefined],
      ["chat-prod", 0.5, expect.any(String)],
    ]);
  });

  it.each([
    ["https://my.services.ai.azure.com", "mistral", ["max_tokens"]],
    ["https://my.openai.azure.com", "openai", ["max_completion_tokens", "stream_options", "user"]],
    ["https://llama.eastus.models.ai.azure.com", "openai", ["max_tokens"]],
  ])("at %s with the type %s gets what is known of it", async (baseUrl, type, expected) => {
    const sent: object[] = [];
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      sent.push(JSON.parse(await new Response(init?.body).text()));
      return new Response("data: [DONE]\n\n", { headers: { "content-type": "text/event-stream" } });
    };
    await using proxy = await startWith({ baseUrl, type, fetch, models: ["my-model"] });
    const more = { model: "my-model", stream: true, max_tokens: 1024, metadata: { user_id: "u" } };
    await (await proxy.post(MESSAGES.path, MESSAGES.request("hi", more))).text();
    const told = Object.keys(sent[0]!).filter((field) => /tokens|stream_|user/.test(field));
    expect(told.toSorted()).toEqual(expected);
  });

  it("takes an answer that the content filter cut for one that was refused", async () => {
    await using proxy = await startWith();
    upstream.answerNext(
      json(200, {
        ...completion("Hel"),
        choices: [{ index: 0, message: { role: "assistant", content: "Hel" }, finish_reason: "content_filter" }],
      }),
    );
    const reply = await proxy.post("/v1/messages", CALLERS.messages.request("hi", { model: "my-gpt" }));
    expect(await reply.json()).toMatchObject({ stop_reason: "refusal", content: [{ type: "text", text: "Hel" }] });
  });
});

describe("tokens of Microsoft Entra", () => {
  const ask = CALLERS.messages.request("hi", { model: "claude-in-azure" });
  const clock = createManualClock();
  let asked: string[];
  const credential = {
    async getToken(scope: string) {
      asked.push(scope);
      return { token: `entra-token-${asked.length}`, expiresOnTimestamp: clock.now() + 3_600_000 };
    },
  };
  beforeEach(() => void (asked = []));

  it("are sent in place of a key, are renewed once for many calls, and are hidden", async () => {
    const credentials = entraToken({ provider: "azure", baseUrl: "https://my.services.ai.azure.com/anthropic/v1", credential });
    const adapter = messagesHttp({
      id: "azure",
      type: "azure",
      baseUrl: `${origin}/anthropic/v1`,
      models: ["claude-in-azure"],
      credentials,
    });
    await using proxy = await startProxy({ clock, providers: [{ protocol: "own", id: "azure", adapter }] });
    upstream.answerAll(json(401, { error: { message: "not entra-token-1" } }));
    const replies = await Promise.all(Array.from({ length: 10 }, () => proxy.post("/v1/messages", ask)));
    for (const reply of replies) expect((await expectError(reply, 401, "messages")).message).toBe("not ***");
    const { url, headers } = await upstream.request();
    expect([url, headers.authorization, headers["x-api-key"]]).toEqual([
      "/anthropic/v1/messages",
      "Bearer entra-token-1",
      undefined,
    ]);
    await clock.jump(3_600_000);
    await (await proxy.post("/v1/messages", ask)).text();
    expect(asked).toEqual(Array(2).fill("https://ai.azure.com/.default"));
  });

  it.each([
    ["https://my.openai.azure.com", "https://cognitiveservices.azure.com/.default"],
    ["https://my.openai.azure.us/openai/v1", "https://cognitiveservices.azure.us/.default"],
    ["https://my.openai.azure.cn", "https://cognitiveservices.azure.cn/.default"],
  ])("for %s have the scope %s", async (baseUrl, scope) => {
    const { headersFor } = entraToken({ provider: "azure", baseUrl, credential })(clock);
    await headersFor({ method: "POST", origin, path: "/", headers: {}, body: undefined }, undefined);
    expect(asked).toEqual([scope]);
  });
});

function completion(content: string) {
  return {
    ...{ id: "chatcmpl-1", object: "chat.completion", created: 1, model: "gpt" },
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop", content_filter_results: SAFE }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }],
  };
}

function chunk(value: object): string {
  return `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "gpt", ...value })}\n\n`;
}
