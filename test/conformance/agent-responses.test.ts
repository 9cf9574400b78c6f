import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { responsesHttp } from "@portico/adapters/models/responses-http";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type ports, Secret } from "@portico/core";
import { expect, it } from "vitest";
import { sealed } from "../harness/echo-responses.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { rememberedContext } from "./agent-engines.ts";
import { openAdapter } from "./open-adapter.ts";

const look: ports.ToolDefinition = {
  id: "own/look",
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: { at: { type: "string" } } },
  riskLevel: "low",
  requiresConfirmation: false,
  idempotent: true,
};

const input = [{ type: "text" as const, text: 'please look {"at":"it"}' }];

const ADAPTERS = { responses: responsesHttp, "chat-completions": chatHttp, messages: messagesHttp };

async function play(
  id: string,
  protocol: keyof typeof ADAPTERS,
  upstream: FakeUpstream,
  history: readonly ports.ConversationMessage[] = [],
) {
  const provider = ADAPTERS[protocol]({
    id,
    type: "test-vendor",
    baseUrl: upstream.baseUrl,
    credential: new Secret("sk-upstream-key"),
    models: ["echo-large"],
  });
  const others = [provider, systemClock(), randomIds(), memoryTelemetry({})];
  const { port, close } = await openAdapter(loopAgentEngine({}), others);
  try {
    const agent = { name: "A", engine: "loop", tools: [], skills: [], core: false, effort: "high" as const };
    const turn = { agentId: "a", agent, provider: id, model: "echo-large", maxTurns: 3, caller: {}, tools: [look] };
    const callTool = async () => ({ content: [{ type: "text" as const, text: "seen" }], isError: false });
    return await port.run({ ...turn, history, input }, rememberedContext(new Map(), { callTool }).context);
  } finally {
    await close();
  }
}

const inputOf = async (upstream: FakeUpstream, number: number) =>
  JSON.parse(await (await upstream.request(number)).text()).input as readonly Record<string, unknown>[];

it("an agent's tool is called over two rounds, and the encrypted reasoning of the first goes back in the second", async () => {
  await using upstream = await startFakeUpstream();
  const { output, toolCalls, end } = await play("main", "responses", upstream);
  expect([output, end]).toEqual(["tool result: seen", "completed"]);
  expect(toolCalls).toMatchObject([{ name: "look", arguments: { at: "it" }, isError: false }]);
  const [, reasoning, call, result] = await inputOf(upstream, 2);
  expect(reasoning).toMatchObject({ type: "reasoning", id: "rs_1", encrypted_content: sealed("rs_1") });
  expect([call, result]).toMatchObject([
    { type: "function_call", name: "look", arguments: '{"at":"it"}' },
    { type: "function_call_output", call_id: call?.["call_id"], output: "seen" },
  ]);
  expect(upstream.requests).toHaveLength(2);
});

it("encrypted reasoning goes back in later turns to the provider that sealed it, and to no other", async () => {
  await using upstream = await startFakeUpstream();
  const { messages } = await play("main", "responses", upstream);
  const sentTo = async (id: string, protocol: "responses" | "chat-completions") => {
    const before = upstream.requests.length;
    await play(id, protocol, upstream, [{ role: "user", parts: input }, ...messages]);
    return (await upstream.request(before + 1)).text();
  };
  expect(await sentTo("main", "responses")).toContain(sealed("rs_1"));
  for (const text of [await sentTo("other", "responses"), await sentTo("third", "chat-completions")]) {
    expect(text).not.toContain(sealed("rs_1"));
    expect(text).toContain("look");
  }
});

it.each([
  ["responses", "messages"],
  ["responses", "chat-completions"],
  ["messages", "chat-completions"],
  ["messages", "responses"],
] as const)("reasoning that came over %s is not sent over %s, if the provider of one id changes", async (first, then) => {
  await using upstream = await startFakeUpstream();
  const signed = { type: "thinking" as const, text: "I think", provider: "main", model: "echo-large" };
  const { messages } = await play("main", first, upstream);
  const before = upstream.requests.length;
  const history = [
    { role: "user" as const, parts: input },
    { role: "assistant" as const, parts: [{ ...signed, signature: "c2lnbmVk", protocol: first }] },
    ...messages,
  ];
  const { end, output } = await play("main", then, upstream, history);
  expect([end, output]).toEqual(["completed", "tool result: seen"]);
  const text = await (await upstream.request(before + 1)).text();
  expect(text).toContain("tool result: seen");
  for (const state of ["c2lnbmVk", sealed("rs_1"), "responses:", "reasoning_details"]) expect(text).not.toContain(state);
});
