import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type ports, Secret } from "@portico/core";
import { expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { events, json } from "../harness/upstream-answers.ts";
import { refusalOf, refusingModel, type Vendor } from "../harness/vendor-refusals.ts";
import { rememberedContext } from "./agent-engines.ts";
import { openAdapter } from "./open-adapter.ts";

const VENDORS: readonly (readonly [type: string, vendor: Vendor])[] = [
  ["openai", "openai"],
  ["mistral", "mistral"],
  ["deepseek", "deepseek"],
  ["google", "google"],
  ["vllm", "template"],
  ["anthropic", "anthropic"],
];

const call = (name: string, callId: string) => ({ type: "tool_call" as const, callId, name, toolId: name, arguments: {} });
const result = (name: string, callId: string, said: string) => ({
  type: "tool_result" as const,
  callId,
  name,
  result: { content: [{ type: "text" as const, text: said }], isError: false },
});

/** What members said, and what another provider's model did, before the agent moved to this provider. */
const HISTORY = [
  { role: "user", parts: [{ type: "text", text: " \n" }] },
  { role: "assistant", parts: [call("functions.search web", "call_0123456789_0123456789_0123|fc_0123456789")] },
  { role: "tool", parts: [result("functions.search web", "call_0123456789_0123456789_0123|fc_0123456789", " ")] },
  { role: "user", parts: [{ type: "text", text: "cut \ud83d here" }] },
  { role: "assistant", parts: [call("look", "functions.look:0")] },
  { role: "tool", parts: [result("look", "functions.look:0", "seen")] },
] as unknown as readonly ports.ConversationMessage[];

const choice: ports.ToolDefinition = {
  id: "own/look",
  name: "look",
  description: "Looks",
  inputSchema: {
    type: "object",
    anyOf: [{ required: ["a"] }, { required: ["b"] }],
    properties: { a: { type: "array" }, b: { type: "array", items: [{ type: "string" }] } },
  },
  riskLevel: "low",
  requiresConfirmation: false,
  idempotent: false,
};

async function play(type: string, upstream: FakeUpstream, history: readonly ports.ConversationMessage[] = HISTORY) {
  const options = {
    id: type,
    type,
    baseUrl: upstream.baseUrl,
    credential: new Secret("sk-upstream-key"),
    models: ["echo-large"],
  };
  const provider = type === "anthropic" ? messagesHttp(options) : chatHttp(options);
  const { port, close } = await openAdapter(loopAgentEngine({}), [provider, systemClock(), memoryTelemetry({})]);
  try {
    const agent = { name: "A", engine: "loop", tools: [], skills: [], core: false };
    const turn = { agentId: "a", agent, provider: type, model: "echo-large", maxTurns: 3, caller: {}, tools: [choice] };
    const asked = { ...turn, history, input: [{ type: "text" as const, text: "and now?" }] };
    return await port.run(asked, rememberedContext(new Map()).context);
  } finally {
    await close();
  }
}

it.each(VENDORS)("a conversation that an agent takes along is accepted by %s", async (type, vendor) => {
  await using upstream = await startFakeUpstream();
  upstream.answerAll(refusingModel(vendor));
  expect((await play(type, upstream)).output).not.toBe("");
  for (const request of upstream.requests) expect(refusalOf(vendor, await request.text())).toBeUndefined();
});

it("a field that is too long does not make a conversation too long", async () => {
  await using upstream = await startFakeUpstream();
  const message =
    "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got 45 instead.";
  upstream.answerAll(json(400, { error: { message, type: "invalid_request_error", code: "string_above_max_length" } }));
  await expect(play("openai", upstream)).rejects.toThrow("string too long");
  expect(upstream.requests).toHaveLength(1);
});

it("a signed call goes back to the model that made it, and to no other", async () => {
  await using upstream = await startFakeUpstream();
  const signature = "signed/1";
  const called = { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
  const delta = { role: "assistant", tool_calls: [{ ...called, extra_content: { google: { thought_signature: signature } } }] };
  const finish = { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] };
  const pieces = [{ choices: [{ index: 0, delta, finish_reason: null }] }, finish].map(
    (each) => `data: ${JSON.stringify(each)}\n\n`,
  );
  upstream.answerNext(events([...pieces, "data: [DONE]\n\n"]));
  upstream.answerAll(refusingModel("google"));
  const { messages } = await play("google", upstream);
  const sentTo = async (type: Vendor) => {
    upstream.answerAll(refusingModel(type));
    const before = upstream.requests.length;
    await play(type, upstream, [...HISTORY, ...messages]);
    return JSON.stringify(JSON.parse(await (await upstream.request(before + 1)).text()).messages);
  };
  expect(await (await upstream.request(2)).text()).toContain(signature);
  expect(await sentTo("google")).toContain(signature);
  expect(await sentTo("mistral")).not.toContain(signature);
});

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** A user's image, and one that a tool made. */
const SEEN = [
  { role: "user", parts: [{ type: "media", mediaType: "image/jpeg", data: PNG }] },
  { role: "assistant", parts: [call("look", "call_1")] },
  {
    role: "tool",
    parts: [
      {
        ...result("look", "call_1", "seen"),
        result: { content: [{ type: "image", mimeType: "image/png", data: PNG }], isError: false },
      },
    ],
  },
] as unknown as readonly ports.ConversationMessage[];

it.each(["openai", "anthropic"])("images of users and of tools are shown to %s, with the type of their bytes", async (type) => {
  await using upstream = await startFakeUpstream();
  await play(type, upstream, SEEN);
  const text = await (await upstream.request()).text();
  expect(text.split(PNG)).toHaveLength(3);
  expect(text).not.toContain("image/jpeg");
});

it("a model without images gets notes (esengine/DeepSeek-Reasonix#6390)", async () => {
  await using upstream = await startFakeUpstream();
  await play("deepseek", upstream, SEEN);
  const text = await (await upstream.request()).text();
  expect(text).not.toContain(PNG);
  expect(text.match(/an image, image\/(?:jpeg|png), that cannot be shown here/g)).toHaveLength(2);
});

it("a conversation goes on without an image that its provider refuses", async () => {
  await using upstream = await startFakeUpstream();
  upstream.answerNext(json(400, { error: { message: "Could not process image", type: "invalid_request_error" } }));
  expect((await play("anthropic", upstream, SEEN)).output).not.toBe("");
  expect(await (await upstream.request(2)).text()).toContain("an image that the provider refused");
});

it("a prompt is marked for the cache of OpenRouter (anomalyco/opencode#39009)", async () => {
  await using upstream = await startFakeUpstream();
  await play("openrouter", upstream);
  expect(await (await upstream.request()).text()).toContain('"cache_control":{"type":"ephemeral"}');
  await play("openai", upstream);
  expect(await (await upstream.request(2)).text()).not.toContain("cache_control");
});
