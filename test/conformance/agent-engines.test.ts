import { echoAgentEngine } from "@portico/adapters/agent-engines/echo";
import { loopAgentEngine, type LoopOptions } from "@portico/adapters/agent-engines/loop";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { demo } from "@portico/adapters/models/demo";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type ports, Secret } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { chatEvents, messagesEvents } from "../harness/stream-scripts.ts";
import { answerEvents } from "../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { CUT, events, json, type Step } from "../harness/upstream-answers.ts";
import { agentEngineConformance, rememberedContext } from "./agent-engines.ts";
import { openAdapter } from "./open-adapter.ts";

const KEY = "sk-upstream-key-0123456789";
let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.close());

const provider = (protocol: ports.ModelProtocol, dialect: Partial<ports.ChatDialect> = {}) => {
  const options = { id: "main", type: "test", baseUrl: upstream.baseUrl, credential: new Secret(KEY), models: ["echo-large"] };
  return protocol === "messages" ? messagesHttp(options) : chatHttp({ ...options, dialect });
};
const protocols: readonly ports.ModelProtocol[] = ["messages", "chat-completions"];

agentEngineConformance("echo", () => ({ adapter: echoAgentEngine({}), others: [] }));
agentEngineConformance("loop, with the offline provider", () => ({
  adapter: loopAgentEngine({}),
  others: [demo({}), systemClock(), memoryTelemetry({})],
  turn: { provider: "demo", model: "demo" },
  prompt: "Say something longer about the weather, the sea and the mountains in between",
  calling: (names) => `use ${names.join(" and ")}`,
}));
for (const protocol of protocols) {
  agentEngineConformance(`loop, with a provider of ${protocol}`, () => ({
    adapter: loopAgentEngine({}),
    others: [provider(protocol), systemClock(), memoryTelemetry({})],
    turn: { provider: "main", model: "echo-large" },
    calling: (names) => names.map((name) => `${name} {"of":"${name}"}`).join(" "),
  }));
}

describe.each(protocols)("the loop, with a provider of %s", (protocol) => {
  beforeEach(() => upstream.reset());

  const tool = (name: string): ports.ToolDefinition => ({
    id: `own/${name}`,
    name,
    description: `The tool ${name}`,
    inputSchema: { type: "object", properties: { of: { type: "string" } }, required: ["of"] },
    riskLevel: "low",
    requiresConfirmation: false,
    idempotent: false,
  });
  const open = async (options: LoopOptions = {}) =>
    openAdapter(loopAgentEngine(options), [provider(protocol), systemClock(), memoryTelemetry({})]);
  const turnOf = (text: string, more: Partial<ports.AgentTurn> = {}): ports.AgentTurn => ({
    agentId: "agent",
    agent: { name: "Agent", engine: "loop", tools: [], skills: [], core: false, instructions: "Be brief." },
    provider: "main",
    model: "echo-large",
    history: [],
    input: [{ type: "text", text }],
    tools: [],
    maxTurns: 5,
    caller: {},
    ...more,
  });
  const text = (value: string, isError = false): ports.ToolResult => ({ content: [{ type: "text", text: value }], isError });
  const run = async (turn: ports.AgentTurn, context: ports.TurnContext, options?: LoopOptions["context"]) => {
    const { port, close } = await open({ context: options });
    try {
      return await port.run(turn, context);
    } finally {
      await close();
    }
  };
  const body = async (number: number) => JSON.parse((await (await upstream.request(number)).bytes()).toString()) as any;
  const overloadedError = JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
  const overloaded = protocol === "messages" ? `event: error\ndata: ${overloadedError}\n\n` : `data: ${overloadedError}\n\n`;
  const script = (said: string): Step[] => (protocol === "messages" ? messagesEvents(said) : chatEvents(said));

  it("asks with the agent's instructions, model, tools and history, and with the provider's credential alone", async () => {
    const history: ports.ConversationMessage[] = [
      { role: "user", parts: [{ type: "text", text: "earlier" }] },
      { role: "assistant", parts: [{ type: "text", text: "I said" }] },
    ];
    await run(turnOf("now", { history, tools: [tool("look")] }), rememberedContext(new Map()).context);
    const sent = await body(1);
    expect(JSON.stringify(sent.system ?? sent.messages[0])).toContain("Be brief.");
    expect(sent.model).toBe("echo-large");
    expect(JSON.stringify(sent.tools)).toContain("The tool look");
    expect(JSON.stringify(sent.messages)).toMatch(/earlier.*I said.*now/);
    const { headers } = await upstream.request(1);
    expect(JSON.stringify(headers)).toContain(KEY);
    expect(JSON.stringify(headers)).not.toContain("none");
  });

  it("runs the model's tool calls in parallel, returns the results to the model, and counts the usage", async () => {
    const both = Promise.withResolvers<void>();
    const called: string[] = [];
    const { context, said, ran } = rememberedContext(new Map(), {
      async callTool({ toolId, arguments: given }) {
        called.push(`${toolId} ${JSON.stringify(given)}`);
        if (called.length === 2) both.resolve();
        await both.promise;
        return text(`seen by ${toolId}`);
      },
    });
    const outcome = await run(turnOf(`look {"of":"a"} find {"of":"b"}`, { tools: [tool("look"), tool("find")] }), context);
    expect(called.toSorted()).toEqual(['own/find {"of":"b"}', 'own/look {"of":"a"}']);
    expect(outcome.output).toBe("tool result: seen by own/look | seen by own/find");
    expect(outcome.toolCalls.map(({ toolId, name, arguments: given, isError }) => [toolId, name, given, isError])).toEqual([
      ["own/look", "look", { of: "a" }, false],
      ["own/find", "find", { of: "b" }, false],
    ]);
    expect(said.map(({ type }) => type).filter((type) => type !== "text")).toEqual([
      "tool_call",
      "tool_call",
      "tool_result",
      "tool_result",
    ]);
    expect(ran).toEqual(["model-1", "tool-1-1", "tool-1-2", "model-2"]);
    expect(outcome.messages.map(({ role }) => role)).toEqual(["assistant", "tool", "assistant"]);
    expect(outcome.usage).toMatchObject({ modelCalls: 2 });
    expect(outcome.usage?.outputTokens).toBeGreaterThan(0);
  });

  it("gives the model the error of a failed tool, and continues", async () => {
    const { context } = rememberedContext(new Map(), { callTool: async () => text("it broke", true) });
    const outcome = await run(turnOf(`look {"of":"a"}`, { tools: [tool("look")] }), context);
    expect(outcome.output).toContain("it broke");
    expect(outcome.toolCalls).toMatchObject([{ isError: true }]);
    expect(outcome.end).toBe("completed");
  });

  it("tells the model if the result of an interrupted tool is unknown", async () => {
    const { context } = rememberedContext(new Map());
    const interrupted: ports.TurnContext = {
      ...context,
      step: (name, work) =>
        name.startsWith("tool")
          ? Promise.reject(Object.assign(new Error("x"), { name: "StepInterrupted" }))
          : context.step(name, work),
    };
    const outcome = await run(turnOf(`look {"of":"a"}`, { tools: [tool("look")] }), interrupted);
    expect(outcome.output).toContain("it is unknown whether the tool took effect");
  });

  it("stops after maxTurns model calls, with the results of the last ones", async () => {
    const { context } = rememberedContext(new Map(), { callTool: async () => text("more") });
    const outcome = await run(turnOf(`look {"of":"a"}`, { tools: [tool("look")], maxTurns: 1 }), context);
    expect([outcome.end, upstream.requests.length]).toEqual(["max_turns", 1]);
    expect(outcome.messages.at(-1)?.role).toBe("tool");
  });

  it("cuts long results of tools, with a note", async () => {
    const { context, said } = rememberedContext(new Map(), { callTool: async () => text("x".repeat(5000)) });
    await run(turnOf(`look {"of":"a"}`, { tools: [tool("look")] }), context, { resultCharacters: 100 });
    const result = said.find((each) => each.type === "tool_result");
    expect(JSON.stringify(result)).toContain("100 of 5000 characters");
    expect(JSON.stringify(await body(2)).length).toBeLessThan(4000);
  });

  it("leaves the oldest turns out of a conversation that is too long, calls and results together", async () => {
    const turnAbout = (word: string): ports.ConversationMessage[] => [
      { role: "user", parts: [{ type: "text", text: `${word} ${"x".repeat(700)}` }] },
      {
        role: "assistant",
        parts: [{ type: "tool_call", callId: `call-${word}`, toolId: "own/look", name: "look", arguments: { of: word } }],
      },
      {
        role: "tool",
        parts: [
          { type: "tool_result", callId: `call-${word}`, toolId: "own/look", name: "look", result: text(`result of ${word}`) },
        ],
      },
      { role: "assistant", parts: [{ type: "text", text: `answer about ${word}` }] },
    ];
    const history = ["oldest", "older", "newest"].flatMap(turnAbout);
    await run(turnOf("now", { history, tools: [tool("look")] }), rememberedContext(new Map()).context, {
      tokens: 700,
      summarize: false,
    });
    const sent = JSON.stringify((await body(1)).messages);
    expect(sent).not.toContain("oldest");
    expect(sent).toMatch(/newest.*call-newest.*result of newest.*answer about newest.*now/);
  });

  it("asks again with half of the conversation where the provider says that it is too long", async () => {
    const history = Array.from({ length: 20 }, (_, at): ports.ConversationMessage[] => [
      { role: "user", parts: [{ type: "text", text: `question ${at} ${"x".repeat(100)}` }] },
      { role: "assistant", parts: [{ type: "text", text: `answer ${at}` }] },
    ]).flat();
    upstream.answerNext(
      json(400, { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 5 tokens > 4 maximum" } }),
    );
    const outcome = await run(turnOf("now", { history }), rememberedContext(new Map()).context, { summarize: false });
    expect(outcome.output).toBe("echo: now");
    expect((await body(2)).messages.length).toBeLessThan((await body(1)).messages.length * 0.7);
  });

  it.each([429, 500, 503, 529])("tries again after a refusal with status %i, as long as nothing was said", async (status) => {
    upstream.answerNext(json(status, { error: { type: "x", message: "busy" } }, { "retry-after": "0" }));
    expect((await run(turnOf("hello"), rememberedContext(new Map()).context)).output).toBe("echo: hello");
    expect(upstream.requests.length).toBe(2);
  });

  it("reports a refusal in the provider's words, without its credential, and does not retry", async () => {
    upstream.answerNext(json(400, { error: { type: "invalid_request_error", message: `no such thing ${KEY}` } }));
    const refused = await run(turnOf("hello"), rememberedContext(new Map()).context).catch((error: unknown) => error as Error);
    expect(refused).toMatchObject({ name: "ModelRefused" });
    expect((refused as Error).message).toMatch(/status 400: no such thing/);
    expect((refused as Error).message).not.toContain(KEY);
    expect(upstream.requests.length).toBe(1);
  });

  it("fails where the answer ends early after something was said: it is not said twice", async () => {
    const whole = script("one two three four five six");
    upstream.answerNext(events([...whole.slice(0, 5), CUT]));
    const { context, said } = rememberedContext(new Map());
    await expect(run(turnOf("hello"), context)).rejects.toMatchObject({ name: "AnswerBroken" });
    expect(said.length).toBeGreaterThan(0);
    expect(upstream.requests.length).toBe(1);
  });

  it.each<[string, () => Step[]]>([
    ["ends before its protocol's end", () => []],
    ["is cut", () => [CUT]],
    ["tells that the provider is overloaded", () => [overloaded]],
  ])("asks again where an answer of which nothing was said %s", async (_what, end) => {
    // Its first event says nothing yet.
    upstream.answerNext(events([script("x")[0]!, ...end()]));
    const clock = createManualClock();
    const { port, close } = await openAdapter(loopAgentEngine({}), [
      provider(protocol),
      manualClock({ clock }),
      memoryTelemetry({}),
    ]);
    const running = port.run(turnOf("hello"), rememberedContext(new Map()).context);
    await untilSettled(running, () => clock.advance(1000));
    expect((await running).output).toBe("echo: hello");
    expect(upstream.requests.length).toBe(2);
    await close();
  });

  it("names an overload that the provider tells in the middle of its answer, and does not say anything twice", async () => {
    upstream.answerNext(events([...script("one two three four five six").slice(0, 5), overloaded]));
    const { context, said } = rememberedContext(new Map());
    const failed = await run(turnOf("hello"), context).catch((error: unknown) => error as Error);
    expect(failed).toMatchObject({ name: "ModelOverloaded", message: expect.stringContaining("overloaded: Overloaded") });
    expect([said.length > 0, upstream.requests.length]).toEqual([true, 1]);
  });

  it("aborts the call at the provider when the turn aborts", async () => {
    const held = Promise.withResolvers<void>();
    upstream.answerNext(events([...script("one two three").slice(0, 4), held.promise]));
    const { context, stop } = rememberedContext(new Map(), { say: () => stop.abort(new Error("enough")) });
    await expect(run(turnOf("hello"), context)).rejects.toThrow("enough");
    await upstream.quiet();
    held.resolve();
  });
});

/** Do something again and again until a promise has settled, however it does. */
async function untilSettled(promise: Promise<unknown>, again: () => Promise<unknown>): Promise<void> {
  let isSettled = false;
  const settled = () => void (isSettled = true);
  void promise.then(settled, settled);
  while (!isSettled) await again();
}

describe("the loop and thinking", () => {
  beforeEach(() => upstream.reset());

  const look: ports.TurnTool = {
    ...{ id: "look", name: "look", description: "", inputSchema: { type: "object" } },
    ...{ riskLevel: "low", requiresConfirmation: false, idempotent: true },
  };
  const play = async (
    adapter: ReturnType<typeof provider>,
    history: readonly ports.ConversationMessage[] = [],
    steering?: ports.TurnContext["steering"],
  ) => {
    const { port, close } = await openAdapter(loopAgentEngine({}), [adapter, systemClock(), memoryTelemetry({})]);
    const { context, said } = rememberedContext(new Map(), {
      steering,
      callTool: async () => ({ content: [{ type: "text", text: "seen" }], isError: false }),
    });
    const agent = { name: "A", engine: "loop", tools: [], skills: [], core: false };
    const input = [{ type: "text" as const, text: "go" }];
    const asked = { agentId: "a", agent, provider: "main", model: "echo-large", input, tools: [look], maxTurns: 3, caller: {} };
    const outcome = await port.run({ ...asked, history }, context);
    await close();
    return { outcome, said };
  };
  const sent = async (number: number) =>
    JSON.parse((await (await upstream.request(number)).bytes()).toString()).messages as any[];
  const thinks = { thinking: "let me see", calls: [{ id: "call_1", name: "look", input: {} }] };

  it("gives signed and redacted thinking back to the model that made it, unchanged", async () => {
    const block = (index: number, start: object, ...deltas: object[]) => [
      `event: content_block_start\ndata: ${JSON.stringify({ type: "content_block_start", index, content_block: start })}\n\n`,
      ...deltas.map(
        (delta) => `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index, delta })}\n\n`,
      ),
      `event: content_block_stop\ndata: ${JSON.stringify({ type: "content_block_stop", index })}\n\n`,
    ];
    const [first, ...rest] = messagesEvents("done");
    upstream.answerNext(
      events([
        first!,
        ...block(
          0,
          { type: "thinking", thinking: "", signature: "" },
          { type: "thinking_delta", thinking: "let me see" },
          { type: "signature_delta", signature: "sig-1" },
        ),
        ...block(1, { type: "redacted_thinking", data: "opaque" }),
        ...block(
          2,
          { type: "tool_use", id: "call_1", name: "look", input: {} },
          { type: "input_json_delta", partial_json: '{"of":"a"}' },
        ),
        ...rest.slice(-2),
      ]),
    );
    const { said } = await play(provider("messages"));
    expect(said[0]).toEqual({ type: "thinking", delta: "let me see" });
    expect((await sent(2))[1].content.slice(0, 2)).toEqual([
      { type: "thinking", thinking: "let me see", signature: "sig-1" },
      { type: "redacted_thinking", data: "opaque" },
    ]);
  });

  it("gives Chat Completions its reasoning back as reasoning_content within the turn, and not in later ones", async () => {
    upstream.answerNext(events(answerEvents("chat-completions", thinks)));
    const { outcome } = await play(provider("chat-completions"));
    expect((await sent(2))[1]).toMatchObject({ role: "assistant", reasoning_content: "let me see", tool_calls: [{}] });
    await play(provider("chat-completions"), [{ role: "user", parts: [{ type: "text", text: "go" }] }, ...outcome.messages]);
    expect(JSON.stringify(await sent(3))).not.toContain("let me see");
  });

  it("puts an answer between a tool's result and what the user said meanwhile, for providers that refuse a user's message there", async () => {
    const said: (readonly ports.MessagePart[])[][] = [[], [[{ type: "text", text: "in blue" }]]];
    upstream.answerNext(
      events(answerEvents("chat-completions", { calls: [{ id: "call_1", name: "look", input: {} }] })),
      events(answerEvents("chat-completions", { text: "Blue." })),
    );
    await play(provider("chat-completions", { userAfterTool: false }), [], async () => said.shift() ?? []);
    const messages = await sent(2);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(JSON.stringify(messages.at(-1).content)).toContain("in blue");
  });

  it("sends reasoning_content and stream_options only to providers whose dialect accepts them", async () => {
    upstream.answerNext(events(answerEvents("chat-completions", thinks)));
    await play(provider("chat-completions", { reasoningContent: false, streamOptions: false }));
    const body = (await (await upstream.request(2)).bytes()).toString();
    expect(body).toContain("call_1");
    expect(body).not.toMatch(/let me see|stream_options/);
  });

  it("gives thinking to no other model than the one that made it", async () => {
    const made = (by: string) => ({ type: "thinking" as const, text: `by ${by}`, signature: "c2lnbmVk" });
    const history: ports.ConversationMessage[] = [
      { role: "user", parts: [{ type: "text", text: "earlier" }] },
      {
        role: "assistant",
        parts: [
          { ...made("this"), provider: "main", model: "echo-large" },
          { ...made("another provider"), provider: "other", model: "echo-large" },
          { ...made("another model"), provider: "main", model: "echo-small" },
          { type: "text", text: "I said" },
        ],
      },
    ];
    await play(provider("messages"), history);
    const { content } = (await sent(1))[1];
    expect(content.map(({ thinking, text }: any) => thinking ?? text)).toEqual(["by this", "I said"]);
  });
});
