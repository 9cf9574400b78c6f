import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { demo } from "@portico/adapters/models/demo";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { Secret } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../../harness/fake-upstream.ts";
import { openNode } from "../../../harness/run-node.ts";
import { hangUp, json, never } from "../../../harness/upstream-answers.ts";

const kind = {
  type: "object",
  properties: { kind: { enum: ["bug", "question"] } },
  required: ["kind"],
  additionalProperties: false,
};

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.close());
beforeEach(() => upstream.reset());

const providers = { messages: messagesHttp, "chat-completions": chatHttp };
type Protocol = keyof typeof providers;

/** A node with one provider at the upstream. */
function open(protocol: Protocol = "messages", headersMs = 20_000, type = "test") {
  const options = {
    timeouts: { headersMs },
    id: "main",
    type,
    baseUrl: upstream.baseUrl,
    credential: new Secret("hidden-credential"),
  };
  return openNode(modelNode(), [providers[protocol]({ ...options, models: ["m-small", "m-large"] }), systemClock()]);
}

/** What the model says, in the protocol's words. */
function says(protocol: Protocol, said: { readonly text?: string; readonly call?: unknown }) {
  const call = said.call === undefined ? undefined : { name: "answer", input: said.call };
  if (protocol === "messages") {
    const content = call ? [{ type: "tool_use", id: "call_1", ...call }] : [{ type: "text", text: said.text }];
    const usage = { input_tokens: 3, output_tokens: 5 };
    return json(200, { id: "m", type: "message", role: "assistant", model: "m", content, stop_reason: "end_turn", usage });
  }
  const calls = call && [
    { id: "call_1", type: "function", function: { name: call.name, arguments: JSON.stringify(call.input) } },
  ];
  const message = { role: "assistant", content: said.text ?? null, ...(calls && { tool_calls: calls }) };
  const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
  return json(200, {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage,
  });
}

async function asked(number = 1): Promise<Record<string, unknown>> {
  return JSON.parse((await (await upstream.request(number)).bytes()).toString()) as Record<string, unknown>;
}

describe("model: with the demo provider", () => {
  it("gives text and usage, and what a schema describes", async () => {
    await using node = await openNode(modelNode(), [demo({})]);
    expect(await node.run({ prompt: "Hello" })).toEqual({
      text: "You said: Hello (This is the offline demo model.)",
      usage: { inputTokens: expect.any(Number) as number, outputTokens: expect.any(Number) as number },
    });
    expect(await node.run({ prompt: "Hello", output: kind })).toEqual({ kind: "bug" });
    expect(await node.run({ prompt: "Hello", output: { type: "array", items: { const: 1 }, minItems: 1 } })).toEqual([1]);
    expect(await node.run({ prompt: "Hello", output: { $defs: { a: kind }, $ref: "#/$defs/a" } })).toEqual({ kind: "bug" });
  });
});

it("names its limit as a provider of Chat Completions takes it (open points 12)", async () => {
  upstream.answerNext(says("chat-completions", { text: "A bug." }));
  await using node = await open("chat-completions", undefined, "ollama");
  await node.run({ prompt: "What is it?", maxTokens: 7 });
  const body = await asked();
  expect(body).toMatchObject({ max_tokens: 7 });
  expect(body).not.toHaveProperty("max_completion_tokens");
});

describe.each<Protocol>(["messages", "chat-completions"])("model: over %s", (protocol) => {
  it("is asked what the definition says", async () => {
    upstream.answerNext(says(protocol, { text: "A bug." }));
    await using node = await open(protocol);
    const messages = [
      { role: "user", content: "One" },
      { role: "assistant", content: "Two" },
      { role: "user", content: "Three" },
    ];
    const output = await node.run({ model: "m-large", system: "Be brief.", messages, maxTokens: 7, temperature: 0.5 });
    expect(output).toEqual({ text: "A bug.", usage: { inputTokens: 3, outputTokens: 5 } });
    const body = await asked();
    const limit = protocol === "messages" ? "max_tokens" : "max_completion_tokens";
    expect(body).toMatchObject({ model: "m-large", [limit]: 7, temperature: 0.5 });
    expect(JSON.stringify(body).match(/max_\w*tokens/g)).toEqual([limit]);
    for (const word of ["Be brief.", "One", "Two", "Three"]) expect(JSON.stringify(body)).toContain(word);
  });

  it("gives what the schema describes, called as a tool or said in words", async () => {
    await using node = await open(protocol);
    upstream.answerNext(says(protocol, { call: { kind: "bug" } }), says(protocol, { text: '```json\n{"kind":"question"}\n```' }));
    expect(await node.run({ prompt: "Which?", output: kind })).toEqual({ kind: "bug" });
    expect((await asked())["model"]).toBe("m-small");
    expect(JSON.stringify((await asked())["tools"])).toContain('"enum":["bug","question"]');
    expect(await node.run({ prompt: "Which?", output: kind })).toEqual({ kind: "question" });
  });

  it("tells a model once why its output does not match the schema, and fails the second time", async () => {
    await using node = await open(protocol);
    upstream.answerNext(says(protocol, { call: { kind: "hidden-word" } }), says(protocol, { call: { kind: "bug" } }));
    expect(await node.run({ prompt: "Which?", output: kind })).toEqual({ kind: "bug" });
    expect(JSON.stringify((await asked(2))["messages"])).toContain("/kind: must be equal to one of the allowed values");
    upstream.answerNext(says(protocol, { text: "hidden-word" }), says(protocol, { call: { kind: "hidden-word" } }));
    const error = await node.failure({ prompt: "Which?", output: kind });
    expect([error.code, error.retryable]).toEqual(["model_output_invalid", true]);
    expect(error.message).not.toContain("hidden-word");
    expect(upstream.requests).toHaveLength(4);
  });

  it.each([
    [400, false],
    [401, false],
    [404, false],
    [408, true],
    [409, true],
    [429, true],
    [500, true],
    [503, true],
  ])(
    "fails with model_refused after status %i, retryable: %s, in the upstream's words without the credential",
    async (status, retryable) => {
      upstream.answerNext(json(status, { type: "error", error: { type: "e", message: "No hidden-credential today" } }));
      await using node = await open(protocol);
      const error = await node.failure({ prompt: "Hello" });
      expect([error.code, error.retryable]).toEqual(["model_refused", retryable]);
      expect(error.message).toContain("No *** today");
      expect(upstream.requests).toHaveLength(1);
    },
  );

  it("fails with model_timeout if the upstream is silent for too long", async () => {
    upstream.answerNext(never());
    await using node = await open(protocol, 100);
    expect(await node.failure({ prompt: "Hello" })).toMatchObject({ code: "model_timeout", retryable: true });
  });

  it("fails with model_unreachable where the connection breaks, and rejects once it is aborted", async () => {
    upstream.answerNext(hangUp());
    await using node = await open(protocol);
    expect(await node.failure({ prompt: "Hello" })).toMatchObject({ code: "model_unreachable", retryable: true });
    upstream.answerNext(never());
    const stopping = new AbortController();
    const stopped = node.run({ prompt: "Hello" }, { signal: stopping.signal });
    await upstream.request(2);
    const reason = new Error("the run was cancelled");
    stopping.abort(reason);
    await expect(stopped).rejects.toBe(reason);
    await upstream.quiet();
  });
});

describe("model: which one", () => {
  it("is a configured provider's: one must be named where there are several", async () => {
    await using node = await openNode(modelNode(), [demo({ id: "a" }), demo({ id: "b" })]);
    expect(node.check({ prompt: "x" })).toEqual([{ path: ["provider"], message: "provider must name one of a, b" }]);
    expect(node.check({ provider: "b", prompt: "x" })).toEqual([]);
    expect(node.check({ provider: "c", prompt: "x" })).toMatchObject([{ path: ["provider"] }]);
    expect(await node.failure({ provider: "c", prompt: "x" })).toMatchObject({
      code: "model_unknown_provider",
      retryable: false,
    });
    expect(await node.run({ provider: "b", prompt: "x" })).toMatchObject({ text: expect.any(String) as string });
  });

  it("is one that the provider serves", async () => {
    await using node = await open();
    const message = 'Provider "main" serves no model "m-huge"';
    expect(node.check({ model: "m-huge", prompt: "x" })).toEqual([{ path: ["model"], message }]);
    expect(await node.failure({ model: "m-huge", prompt: "x" })).toMatchObject({
      code: "model_unknown",
      message,
      retryable: false,
    });
    expect(upstream.requests).toHaveLength(0);
  });

  it("fails with a clear message if no provider is configured", async () => {
    await using node = await openNode(modelNode(), []);
    expect(node.check({ prompt: "x" })).toEqual([
      { path: [], message: expect.stringMatching(/No model providers are configured/) as string },
    ]);
    expect((await node.failure({ prompt: "x" })).code).toBe("model_unknown_provider");
  });
});

describe("model: what it is asked", () => {
  it("is either a prompt or messages, and a schema that is one", async () => {
    await using node = await openNode(modelNode(), [demo({})]);
    expect(node.check({})).toHaveLength(1);
    expect(node.check({ prompt: "a", messages: [] })).toHaveLength(1);
    expect((await node.failure({ prompt: "a", output: { type: "nonsense" } })).code).toBe("model_request_invalid");
    expect(node.check({ prompt: "${{ parameters.a }}", provider: "${{ parameters.b }}", output: kind })).toEqual([]);
    expect((await node.failure({})).code).toBe("model_request_invalid");
  });
});
