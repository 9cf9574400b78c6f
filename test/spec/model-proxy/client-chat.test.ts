import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PROTOCOLS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { STREAM_EVENTS } from "../../harness/stream-scripts.ts";
import { CUT, events, json, never } from "../../harness/upstream-answers.ts";

type Messages = OpenAI.ChatCompletionMessageParam[];

const MODEL = { model: "echo-large" };
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PARAMETERS = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const toolNamed = (name: string): OpenAI.ChatCompletionTool => ({
  type: "function",
  function: { name, description: "The weather in a city", parameters: PARAMETERS },
});
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "number" } },
  required: ["city", "degrees"],
  additionalProperties: false,
};

describe.each(["node", "fetch"] as const)("the Chat Completions client library on a %s host", (host) => {
  describe.each([...PROTOCOLS, "responses"] as const)("against a %s upstream", (protocol) => {
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    let client: OpenAI;

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
      new OpenAI({ apiKey, baseURL: proxy.url, fetch: proxy.fetch, maxRetries: 0, ...more });
    const user = (content: OpenAI.ChatCompletionUserMessageParam["content"]): Messages => [{ role: "user", content }];
    const script = STREAM_EVENTS[protocol]("one two");

    it("a plain completion has every field of the protocol", async () => {
      const messages: Messages = [{ role: "system", content: "be brief" }, ...user("say it back")];
      const completion = await client.chat.completions.create({ ...MODEL, max_completion_tokens: 100, messages });
      expect(completion).toMatchObject({
        object: "chat.completion",
        model: "echo-large",
        choices: [{ index: 0, message: { role: "assistant", content: "echo: say it back" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
      });
      expect(Number.isInteger(completion.created)).toBe(true);
      expect(completion.id).toMatch(/./);
    });

    it("a stream gives content events and the same final completion", async () => {
      const words: string[] = [];
      const stream = client.chat.completions.stream({
        ...MODEL,
        stream_options: { include_usage: true },
        messages: user("say it back"),
      });
      stream.on("content", (delta) => words.push(delta));
      const completion = await stream.finalChatCompletion();
      expect(words.join("")).toBe("echo: say it back");
      expect(words.length).toBeGreaterThan(1);
      expect(completion).toMatchObject({
        choices: [{ message: { content: "echo: say it back" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
      });
    });

    it("a stream reports its usage only on request, in a last chunk without choices", async () => {
      for (const includeUsage of [false, true]) {
        const chunks: OpenAI.ChatCompletionChunk[] = [];
        const stream = await client.chat.completions.create({
          ...MODEL,
          stream: true,
          stream_options: { include_usage: includeUsage },
          messages: user("hi"),
        });
        for await (const chunk of stream) chunks.push(chunk);
        const last = chunks.at(-1);
        if (includeUsage)
          expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } });
        else expect([last?.choices[0]?.finish_reason, last?.usage ?? null]).toEqual(["stop", null]);
      }
    });

    it.each([false, true])("the library's own tool runner runs to the end (stream: %s)", async (isStream) => {
      const weather = {
        type: "function" as const,
        function: {
          name: "get_weather",
          description: "The weather in a city",
          parameters: PARAMETERS,
          parse: (text: string) => JSON.parse(text) as { city: string },
          function: async ({ city }: { city: string }) => `18 degrees in ${city}`,
        },
      };
      const parameters = { ...MODEL, tools: [weather], messages: user('get_weather {"city":"Paris"}') };
      const runner = isStream
        ? client.chat.completions.runTools({ ...parameters, stream: true })
        : client.chat.completions.runTools(parameters);
      expect(await runner.finalContent()).toBe("tool result: 18 degrees in Paris");
      expect(upstream.requests).toHaveLength(2);
    });

    it("parallel tool calls come with ids of their own, and the switch turns them off", async () => {
      const parameters = {
        ...MODEL,
        tools: [toolNamed("get_weather"), toolNamed("get_time")],
        messages: user("get_weather and get_time please"),
      };
      const stream = client.chat.completions.stream(parameters);
      const calls = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls ?? [];
      expect(calls.map((call) => call.type === "function" && call.function.name)).toEqual(["get_weather", "get_time"]);
      expect(new Set(calls.map((call) => call.id)).size).toBe(2);
      const results = calls.map((call, index) => ({
        role: "tool" as const,
        tool_call_id: call.id,
        content: index === 0 ? "sunny" : "noon",
      }));
      const messages: Messages = [...parameters.messages, { role: "assistant", content: null, tool_calls: calls }, ...results];
      const final = await client.chat.completions.create({ ...parameters, messages });
      expect(final.choices[0]?.message.content).toBe("tool result: sunny | noon");
      const single = await client.chat.completions.create({ ...parameters, parallel_tool_calls: false });
      expect(single.choices[0]?.message.tool_calls).toHaveLength(1);
    });

    it.each([
      ["required", "tool_calls"],
      [{ type: "function", function: { name: "get_weather" } }, "tool_calls"],
      ["none", "stop"],
      ["auto", "stop"],
    ] as const)("tool_choice %j is obeyed", async (choice, reason) => {
      const completion = await client.chat.completions.create({
        ...MODEL,
        tools: [toolNamed("get_weather")],
        tool_choice: choice,
        messages: user("hello"),
      });
      expect(completion.choices[0]?.finish_reason).toBe(reason);
    });

    it("images by base64 and by URL, and a file, reach the model", async () => {
      const completion = await client.chat.completions.create({
        ...MODEL,
        messages: user([
          { type: "text", text: "what is it?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          { type: "image_url", image_url: { url: "https://pictures.example/a.png" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
        ]),
      });
      expect(completion.choices[0]?.message.content).toBe(
        "echo: what is it? [image image/png] [image https://pictures.example/a.png] [document application/pdf]",
      );
    });

    it("structured output fits its schema", async () => {
      const completion = await client.chat.completions.create({
        ...MODEL,
        response_format: { type: "json_schema", json_schema: { name: "weather", schema: SCHEMA, strict: true } },
        messages: user("the weather as JSON"),
      });
      expect(JSON.parse(completion.choices[0]?.message.content ?? "")).toEqual({ city: "city", degrees: 1 });
    });

    it("a JSON object without a schema is asked for: by the protocol's own field, else by an instruction", async () => {
      const response_format = { type: "json_object" } as const;
      const completion = await client.chat.completions.create({ ...MODEL, messages: user("as JSON"), response_format });
      expect(completion.choices[0]?.message.content).toBe("echo: as JSON");
      const sent = JSON.parse(await (await upstream.request()).text()) as object;
      expect(sent).toMatchObject(
        {
          messages: { system: [{ type: "text", text: expect.stringContaining("valid JSON object") }] },
          "chat-completions": { response_format },
          responses: { instructions: expect.stringContaining("valid JSON object") },
        }[protocol],
      );
    });

    it.each([false, true])("reasoning comes as reasoning_content (stream: %s)", async (isStream) => {
      const parameters = { ...MODEL, reasoning_effort: "high" as const, messages: user("hard one") };
      let reasoning = "";
      if (isStream) {
        for await (const chunk of await client.chat.completions.create({ ...parameters, stream: true })) {
          reasoning += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
        }
      } else {
        const completion = await client.chat.completions.create(parameters);
        reasoning = (completion.choices[0]?.message as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
      }
      expect(reasoning).toBe("thinking about: hard one");
    });

    it("limits and stop sequences end an answer with their reasons", async () => {
      // Responses knows no smaller limit.
      for (const limit of [{ max_completion_tokens: 16 }, { max_tokens: 16 }]) {
        const messages = user(`one${" and".repeat(20)}`);
        const short = await client.chat.completions.create({ ...MODEL, ...limit, messages });
        const content = `echo: one${" and".repeat(14)}`;
        expect(short.choices[0]).toMatchObject({ message: { content }, finish_reason: "length" });
      }
      for (const stop of ["two", ["nothing", "two"]]) {
        const stopped = await client.chat.completions.create({ ...MODEL, stop, messages: user("one two three") });
        expect(stopped.choices[0]).toMatchObject({ message: { content: "echo: one " }, finish_reason: "stop" });
      }
    });

    it.each([
      [400, OpenAI.BadRequestError],
      [401, OpenAI.AuthenticationError],
      [403, OpenAI.PermissionDeniedError],
      [404, OpenAI.NotFoundError],
      [429, OpenAI.RateLimitError],
      [500, OpenAI.InternalServerError],
      [529, OpenAI.InternalServerError],
    ] as const)("an upstream's %s is raised as the library's own typed error", async (status, ErrorClass) => {
      upstream.answerAll(json(status, { error: { message: "words of the upstream" } }, { "x-request-id": "req_upstream" }));
      const error = await failure(client.chat.completions.create({ ...MODEL, messages: user("hi") }));
      expect(error).toBeInstanceOf(ErrorClass);
      expect(error).toMatchObject({ status, requestID: "req_upstream" });
      expect((error as Error).message).toContain("words of the upstream");
      expect(
        await failure(client.chat.completions.stream({ ...MODEL, messages: user("hi") }).finalChatCompletion()),
      ).toBeInstanceOf(ErrorClass);
    });

    it("the proxy's own refusals are typed errors, too", async () => {
      const wrong = await failure(clientOf("service_wrong").chat.completions.create({ ...MODEL, messages: user("hi") }));
      expect(wrong).toBeInstanceOf(OpenAI.AuthenticationError);
      const unknown = await failure(client.chat.completions.create({ model: "nobody", messages: user("hi") }));
      expect(unknown).toBeInstanceOf(OpenAI.BadRequestError);
      expect(unknown).toMatchObject({ type: "invalid_request_error", param: "model" });
      expect(await failure(client.responses.create({ model: "echo-large", input: "hi" }))).toBeInstanceOf(OpenAI.NotFoundError);
    });

    it("a stream that breaks is an error and never a completion", async () => {
      upstream.answerNext(events([...script.slice(0, 4), CUT]));
      const error = await failure(client.chat.completions.stream({ ...MODEL, messages: user("hi") }).finalChatCompletion());
      expect(error).toBeInstanceOf(OpenAI.APIError);
    });

    it("a 429 is retried by the library after what retry-after says", async () => {
      upstream.answerNext(json(429, { error: { message: "slow down" } }, { "retry-after": "0" }));
      const patient = clientOf(await proxy.token(), { maxRetries: 1 });
      const completion = await patient.chat.completions.create({ ...MODEL, messages: user("again") });
      expect(completion.choices[0]?.message.content).toBe("echo: again");
      expect(upstream.requests).toHaveLength(2);
    });

    it("aborting a stream and aborting a call both end the upstream's call", async () => {
      upstream.answerNext(events([...script.slice(0, 4), new Promise(() => {})]), never());
      const stream = client.chat.completions.stream({ ...MODEL, messages: user("hi") });
      const streaming = failure(stream.finalChatCompletion());
      await new Promise<void>((resolve) => stream.once("chunk", () => resolve()));
      stream.abort();
      expect(await streaming).toBeInstanceOf(OpenAI.APIUserAbortError);
      const controller = new AbortController();
      const calling = failure(client.chat.completions.create({ ...MODEL, messages: user("hi") }, { signal: controller.signal }));
      await (await upstream.request(2)).sha256();
      controller.abort();
      expect(await calling).toBeInstanceOf(OpenAI.APIUserAbortError);
      expect(await Promise.all(upstream.requests.map((request) => request.outcome))).toEqual(["aborted", "aborted"]);
    });

    it("the library reads the list of models", async () => {
      const models: OpenAI.Model[] = [];
      for await (const model of client.models.list()) models.push(model);
      expect(models.map(({ id, object, owned_by: ownedBy }) => [id, object, ownedBy])).toEqual([
        ["echo-large", "model", "test-vendor"],
        ["echo-small", "model", "test-vendor"],
      ]);
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
