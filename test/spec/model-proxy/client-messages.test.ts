import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PROTOCOLS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { STREAM_EVENTS } from "../../harness/stream-scripts.ts";
import { CUT, events, json, never } from "../../harness/upstream-answers.ts";

const MODEL = { model: "echo-large", max_tokens: 1024 };
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WEATHER = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
} as const;
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "number" } },
  required: ["city", "degrees"],
  additionalProperties: false,
} as const;

describe.each(["node", "fetch"] as const)("the Messages client library on a %s host", (host) => {
  describe.each([...PROTOCOLS, "responses"] as const)("against a %s upstream", (protocol) => {
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    let client: Anthropic;

    beforeAll(async () => {
      upstream = await startFakeUpstream();
      proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      client = clientOf(await proxy.token());
    });
    beforeEach(() => upstream.reset());
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    const clientOf = (apiKey: string, more: object = {}) =>
      new Anthropic({ apiKey, baseURL: proxy.url.replace(/\/v1$/, ""), fetch: proxy.fetch, maxRetries: 0, ...more });
    const user = (content: Anthropic.MessageParam["content"]) => [{ role: "user", content }] satisfies Anthropic.MessageParam[];
    const textOf = (message: { readonly content: readonly { readonly type: string }[] }) =>
      message.content.map((block) => ("text" in block ? String(block.text) : "")).join("");

    it("a plain message has every field of the protocol", async () => {
      const message = await client.messages.create({ ...MODEL, system: "be brief", messages: user("say it back") });
      expect(message).toMatchObject({
        type: "message",
        role: "assistant",
        model: "echo-large",
        content: [{ type: "text", text: "echo: say it back" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 3, output_tokens: 4 },
      });
      expect(message.id).toMatch(/^msg_/);
    });

    it("an auth token in place of an API key is as good", async () => {
      const bearer = new Anthropic({
        apiKey: null,
        authToken: await proxy.token(),
        baseURL: proxy.url.replace(/\/v1$/, ""),
        fetch: proxy.fetch,
      });
      expect(textOf(await bearer.messages.create({ ...MODEL, messages: user("hi") }))).toBe("echo: hi");
    });

    it("a stream gives text events and the same final message", async () => {
      const words: string[] = [];
      const stream = client.messages.stream({ ...MODEL, messages: user("say it back") }).on("text", (delta) => words.push(delta));
      const message = await stream.finalMessage();
      expect(words.join("")).toBe("echo: say it back");
      expect(words.length).toBeGreaterThan(1);
      expect(message).toMatchObject({
        content: [{ type: "text", text: "echo: say it back" }],
        stop_reason: "end_turn",
        usage: { input_tokens: 3, output_tokens: 4 },
      });
    });

    it("a raw stream begins with message_start and ends with message_stop", async () => {
      const types: string[] = [];
      for await (const event of await client.messages.create({ ...MODEL, stream: true, messages: user("hi") }))
        types.push(event.type);
      expect([types[0], types.at(-1)]).toEqual(["message_start", "message_stop"]);
    });

    it.each([false, true])("a tool is called, its result goes back, and the answer follows (stream: %s)", async (isStream) => {
      const messages: Anthropic.MessageParam[] = user('get_weather {"city":"Paris"}');
      const turn = async () => {
        const parameters = {
          ...MODEL,
          tools: [{ ...WEATHER, input_schema: { ...WEATHER.input_schema, required: ["city"] } }],
          messages,
        };
        return isStream ? client.messages.stream(parameters).finalMessage() : client.messages.create(parameters);
      };
      const called = await turn();
      expect(called.stop_reason).toBe("tool_use");
      const call = called.content.find((block) => block.type === "tool_use");
      expect(call).toMatchObject({ name: "get_weather", input: { city: "Paris" } });
      expect(call?.id).toMatch(/^[a-zA-Z0-9_-]+$/);
      messages.push(
        { role: "assistant", content: called.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call?.id ?? "", content: "18 degrees" }] },
      );
      const final = await turn();
      expect([textOf(final), final.stop_reason]).toEqual(["tool result: 18 degrees", "end_turn"]);
    });

    // The runner asks the server to hold the conversation; where that cannot be, it must be told so in words that it understands.
    it.each([false, true])("the library's own tool runner runs to the end (stream: %s)", async (stream) => {
      const run = async (input: { city: string }) => `18 degrees in ${input.city}`;
      const weather = betaTool({ ...WEATHER, inputSchema: WEATHER.input_schema, run });
      const runner = client.beta.messages.toolRunner({
        ...MODEL,
        stream,
        tools: [weather],
        messages: user('get_weather {"city":"Paris"}'),
      });
      const message = await runner.runUntilDone();
      expect(textOf(message)).toBe("tool result: 18 degrees in Paris");
      expect(upstream.requests).toHaveLength(2);
    });

    it("parallel tool calls, an error among the results, and the switch that turns them off", async () => {
      const tools = ["get_weather", "get_time"].map((name) => ({
        ...WEATHER,
        name,
        input_schema: { ...WEATHER.input_schema, required: ["city"] },
      }));
      const messages: Anthropic.MessageParam[] = user("get_weather and get_time please");
      const message = await client.messages.create({ ...MODEL, tools, messages });
      const calls = message.content.filter((block) => block.type === "tool_use");
      expect(calls.map((call) => call.name)).toEqual(["get_weather", "get_time"]);
      const results = calls.map((call, index) => ({
        type: "tool_result" as const,
        tool_use_id: call.id,
        content: [{ type: "text" as const, text: index === 0 ? "sunny" : "no clock" }],
        is_error: index === 1,
      }));
      const final = await client.messages.create({
        ...MODEL,
        tools,
        messages: [...messages, { role: "assistant", content: message.content }, { role: "user", content: results }],
      });
      expect(textOf(final)).toMatch(/^tool result: sunny \| .*error.*no clock/i);
      const single = await client.messages.create({
        ...MODEL,
        tools,
        messages,
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
      });
      expect(single.content.filter((block) => block.type === "tool_use")).toHaveLength(1);
    });

    it.each([
      [{ type: "any" }, "tool_use"],
      [{ type: "tool", name: "get_weather" }, "tool_use"],
      [{ type: "none" }, "end_turn"],
      [{ type: "auto" }, "end_turn"],
    ] as const)("tool_choice %j is obeyed", async (choice, reason) => {
      const tools = [{ ...WEATHER, input_schema: { ...WEATHER.input_schema, required: ["city"] } }];
      const message = await client.messages.create({ ...MODEL, tools, tool_choice: choice, messages: user("hello") });
      expect(message.stop_reason).toBe(reason);
    });

    it("images by base64 and by URL, and a PDF, reach the model", async () => {
      const message = await client.messages.create({
        ...MODEL,
        messages: user([
          { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
          { type: "image", source: { type: "url", url: "https://pictures.example/a.png" } },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } },
          { type: "text", text: "what is it?" },
        ]),
      });
      expect(textOf(message)).toBe(
        "echo: what is it? [image image/png] [image https://pictures.example/a.png] [document application/pdf]",
      );
    });

    it("structured output fits its schema", async () => {
      const message = await client.messages.create({
        ...MODEL,
        output_config: { format: { type: "json_schema", schema: SCHEMA } },
        messages: user("the weather as JSON"),
      });
      expect(JSON.parse(textOf(message))).toEqual({ city: "city", degrees: 1 });
    });

    it.each([false, true])("thinking comes before the text (stream: %s)", async (isStream) => {
      const parameters = {
        ...MODEL,
        max_tokens: 8000,
        thinking: { type: "enabled" as const, budget_tokens: 2000 },
        messages: user("hard one"),
      };
      const message = isStream
        ? await client.messages.stream(parameters).finalMessage()
        : await client.messages.create(parameters);
      expect(message.content.map((block) => block.type)).toEqual(["thinking", "text"]);
      expect(message.content[0]).toMatchObject({ thinking: "thinking about: hard one" });
    });

    it("max_tokens and stop_sequences end an answer with their reasons", async () => {
      // Responses knows no smaller limit.
      const short = await client.messages.create({ ...MODEL, max_tokens: 16, messages: user(`one${" and".repeat(20)}`) });
      expect([textOf(short), short.stop_reason]).toEqual([`echo: one${" and".repeat(14)}`, "max_tokens"]);
      const stopped = await client.messages.create({ ...MODEL, stop_sequences: ["two"], messages: user("one two three") });
      expect(textOf(stopped)).toBe("echo: one ");
      // Chat Completions never tells which sequence, nor that it was one.
      expect(stopped.stop_reason).toBe(protocol === "chat-completions" ? "end_turn" : "stop_sequence");
    });

    it.each([
      [400, Anthropic.BadRequestError],
      [401, Anthropic.AuthenticationError],
      [403, Anthropic.PermissionDeniedError],
      [404, Anthropic.NotFoundError],
      [429, Anthropic.RateLimitError],
      [500, Anthropic.InternalServerError],
      [529, Anthropic.InternalServerError],
    ] as const)("an upstream's %s is raised as the library's own typed error", async (status, ErrorClass) => {
      upstream.answerAll(json(status, { error: { message: "words of the upstream" } }, { "request-id": "req_upstream" }));
      const error = await failure(client.messages.create({ ...MODEL, messages: user("hi") }));
      expect(error).toBeInstanceOf(ErrorClass);
      expect(error).toMatchObject({
        status,
        requestID: "req_upstream",
        error: { type: "error", error: { message: "words of the upstream" } },
      });
      expect(await failure(client.messages.stream({ ...MODEL, messages: user("hi") }).finalMessage())).toBeInstanceOf(ErrorClass);
    });

    it("the proxy's own refusals are typed errors, too", async () => {
      const wrong = clientOf("service_wrong");
      expect(await failure(wrong.messages.create({ ...MODEL, messages: user("hi") }))).toBeInstanceOf(
        Anthropic.AuthenticationError,
      );
      expect(await failure(client.messages.create({ ...MODEL, model: "nobody", messages: user("hi") }))).toBeInstanceOf(
        Anthropic.BadRequestError,
      );
      expect(await failure(client.messages.countTokens({ model: "echo-large", messages: user("hi") }))).toBeInstanceOf(
        Anthropic.NotFoundError,
      );
    });

    it("a stream that breaks is an error and never a message", async () => {
      const script = STREAM_EVENTS[protocol]("one two");
      upstream.answerNext(events([...script.slice(0, 4), CUT]));
      expect(await failure(client.messages.stream({ ...MODEL, messages: user("hi") }).finalMessage())).toBeInstanceOf(
        Anthropic.APIError,
      );
    });

    it("a 429 is retried by the library after what retry-after says", async () => {
      upstream.answerNext(json(429, { error: { message: "slow down" } }, { "retry-after": "0" }));
      const patient = clientOf(await proxy.token(), { maxRetries: 1 });
      expect(textOf(await patient.messages.create({ ...MODEL, messages: user("again") }))).toBe("echo: again");
      expect(upstream.requests).toHaveLength(2);
    });

    it("aborting a stream and aborting a call both end the upstream's call", async () => {
      const script = STREAM_EVENTS[protocol]("one two");
      upstream.answerNext(events([...script.slice(0, 4), new Promise(() => {})]), never());
      const stream = client.messages.stream({ ...MODEL, messages: user("hi") });
      const streaming = failure(stream.finalMessage());
      await new Promise<void>((resolve) => stream.once("text", () => resolve()));
      stream.abort();
      expect(await streaming).toBeInstanceOf(Anthropic.APIUserAbortError);
      const controller = new AbortController();
      const calling = failure(client.messages.create({ ...MODEL, messages: user("hi") }, { signal: controller.signal }));
      await (await upstream.request(2)).sha256();
      controller.abort();
      expect(await calling).toBeInstanceOf(Anthropic.APIUserAbortError);
      expect(await Promise.all(upstream.requests.map((request) => request.outcome))).toEqual(["aborted", "aborted"]);
    });

    it("the library reads the list of models", async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      expect(ids).toEqual(["echo-large", "echo-small"]);
    });
  });
});

/** What a promise rejects with; fails when it doesn't. */
async function failure(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("It was expected to fail");
}
