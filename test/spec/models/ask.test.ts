import { systemClock } from "@portico/adapters/clock/system";
import { ask, type ModelQuestion } from "@portico/adapters/models/ask";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { createMemoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type ports, Secret } from "@portico/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type OpenAdapter, openAdapter } from "../../conformance/open-adapter.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { compress, json, never, stream, whole } from "../../harness/upstream-answers.ts";

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.close());

const QUESTION: ModelQuestion = { system: "Be brief.", prompt: "Hello there", maxTokens: 50, temperature: 0.5 };
const KEY = "a-key-that-stays-here";

describe.each([
  { protocol: "messages", adapter: messagesHttp },
  { protocol: "chat-completions", adapter: chatHttp },
] as const)("ask, with a provider of $protocol", ({ adapter }) => {
  let opened: OpenAdapter<ports.ModelProvider>;
  let provider: ports.ModelProvider;
  const open = async (models: readonly string[]) => {
    const options = { id: "main", type: "vendor", baseUrl: upstream.baseUrl, models, credential: new Secret(KEY) };
    opened = await openAdapter(adapter(options), [systemClock()]);
    provider = opened.port;
  };
  beforeEach(async () => {
    upstream.reset();
    await open(["echo-small", "echo-large"]);
  });
  afterEach(() => opened.close());
  const signal = new AbortController().signal;
  const sent = async () => (await (await upstream.request()).json()) as Record<string, unknown>;

  it("returns the text of the answer, its end and its tokens", async () => {
    const { text, finish, usage } = await ask(provider, QUESTION, signal);
    expect(text).toContain("Hello there");
    expect(finish).toBe("stop");
    expect(usage).toEqual({ inputTokens: expect.any(Number), outputTokens: expect.any(Number) });
  });

  it("sends instructions, limits and the provider's first model, unless the question names one", async () => {
    await ask(provider, QUESTION, signal);
    const body = await sent();
    expect(body).toMatchObject({ model: "echo-small", temperature: 0.5 });
    expect([body["max_tokens"], body["max_completion_tokens"]]).toContain(50);
    expect(JSON.stringify(body)).toContain("Be brief.");
    upstream.reset();
    await ask(provider, { prompt: "Hello", model: "echo-large" }, signal);
    expect(await sent()).toMatchObject({ model: "echo-large" });
  });

  it("names what is missing if the provider lists no models", async () => {
    await opened.close();
    await open([]);
    await expect(ask(provider, QUESTION, signal)).rejects.toThrow('Provider "main" lists no models: name one in the question');
  });

  it("rejects with the provider's words and status, without the credential", async () => {
    upstream.answerNext(
      json(429, { error: { type: "rate_limit_error", message: `Too fast for ${KEY}` } }, { "retry-after": "3" }),
    );
    const refused = (await ask(provider, QUESTION, signal).catch((error: unknown) => error)) as Error;
    expect(refused).toMatchObject({ name: "ModelRefused", status: 429, isPassing: true, retryAfterMs: 3000 });
    expect(refused.message).toContain("Too fast for");
    expect(refused.message).not.toContain(KEY);
  });

  it.each([
    ["in milliseconds", {}, { "retry-after-ms": "1500" }],
    ["within Google's error (googleapis/python-genai#1875)", { details: [{ retryDelay: "1.5s" }] }, {}],
  ])("rejects with the wait that the provider asks for %s", async (_, more, headers) => {
    upstream.answerNext(json(429, { error: { message: "Too fast", ...more } }, headers));
    await expect(ask(provider, QUESTION, signal)).rejects.toMatchObject({ retryAfterMs: 1_500 });
  });

  it("reads the words of a refusal that is compressed", async () => {
    const body = compress("gzip", JSON.stringify({ error: { type: "invalid_request_error", message: "No such thing" } }));
    upstream.answerNext(whole(400, body, { "content-type": "application/json", "content-encoding": "gzip" }));
    await expect(ask(provider, QUESTION, signal)).rejects.toThrow("No such thing");
  });

  it("lets go of an answer whose encoding it does not know", async () => {
    const headers = { "content-type": "application/json", "content-encoding": "unknown" };
    upstream.answerNext(stream(["?", new Promise<never>(() => {})], { headers }));
    await expect(ask(provider, QUESTION, signal)).rejects.toMatchObject({ name: "AnswerBroken" });
    await upstream.quiet();
  });

  it("rejects with the error of the port if the provider is unreachable", async () => {
    await opened.close();
    opened = await openAdapter(adapter({ id: "main", type: "vendor", baseUrl: "http://127.0.0.1:1/v1", models: ["m"] }), [
      systemClock(),
    ]);
    await expect(ask(opened.port, QUESTION, signal)).rejects.toMatchObject({ name: "ModelUnreachable" });
  });

  it("aborts the call with its signal, and rejects with the reason", async () => {
    upstream.answerNext(never());
    const leaving = new AbortController();
    const asking = ask(provider, QUESTION, leaving.signal);
    await upstream.request();
    const reason = new Error("the caller left");
    leaving.abort(reason);
    await expect(asking).rejects.toBe(reason);
    await upstream.quiet();
    await expect(ask(provider, QUESTION, leaving.signal)).rejects.toBe(reason);
    expect(upstream.requests).toHaveLength(1);
  });

  it("is measured as a call of a plugin, where it is given the telemetry", async () => {
    const telemetry = createMemoryTelemetry();
    await ask(provider, { ...QUESTION, telemetry }, signal);
    expect(telemetry.modelCalls).toMatchObject([{ source: "plugin", provider: "main", model: "echo-small", error: undefined }]);
  });
});
