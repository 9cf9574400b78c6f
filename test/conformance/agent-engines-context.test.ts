import { loopAgentEngine, type LoopOptions } from "@portico/adapters/agent-engines/loop";
import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEvents } from "../harness/answer-events.ts";
import { cachingModel } from "../harness/caching-model.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { events, json } from "../harness/upstream-answers.ts";
import { rememberedContext } from "./agent-engines.ts";
import { openAdapter } from "./open-adapter.ts";

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.close());
beforeEach(() => upstream.reset());

const look: ports.ToolDefinition = {
  id: "own/look",
  name: "look",
  description: `Looks. ${"It can see much. ".repeat(30)}`,
  inputSchema: { type: "object", properties: { at: { type: "number" } }, required: ["at"] },
  riskLevel: "low",
  requiresConfirmation: false,
  idempotent: true,
};
const text = (value: string): ports.ToolResult => ({ content: [{ type: "text", text: value }], isError: false });
const said = (role: "user" | "assistant", value: string): ports.ConversationMessage => ({
  role,
  parts: [{ type: "text", text: value }],
});
const looked = (at: number, result: string): ports.ConversationMessage[] => [
  said("user", `look at ${at}`),
  { role: "assistant", parts: [{ type: "tool_call", callId: `call-${at}`, toolId: look.id, name: "look", arguments: { at } }] },
  { role: "tool", parts: [{ type: "tool_result", callId: `call-${at}`, toolId: look.id, name: "look", result: text(result) }] },
  said("assistant", `I looked at ${at}`),
];
const call = (at: number) => [{ id: `toolu_${at}`, name: "look", input: { at } }];

async function play(
  protocol: ports.ModelProtocol,
  turn: Partial<ports.AgentTurn>,
  {
    options = {},
    result = () => "seen",
    told = [],
    models = ["echo-large"],
  }: {
    options?: LoopOptions["context"];
    result?: (at: number) => string;
    told?: ports.Saying[];
    models?: readonly string[] | "discover";
  } = {},
): Promise<ports.TurnOutcome> {
  const at = { id: "main", type: "test", baseUrl: upstream.baseUrl, models };
  const provider = protocol === "messages" ? messagesHttp(at) : chatHttp(at);
  const { port, close } = await openAdapter(loopAgentEngine({ context: options }), [
    provider,
    systemClock(),
    memoryTelemetry({}),
  ]);
  const { context } = rememberedContext(new Map(), {
    callTool: async ({ arguments: given }) => text(result((given as { at: number }).at)),
    say: (saying) => void told.push(saying),
  });
  try {
    return await port.run(
      {
        agentId: "agent",
        agent: { name: "Agent", engine: "loop", tools: [], skills: [], core: false, instructions: "Be brief. ".repeat(40) },
        provider: "main",
        model: "echo-large",
        history: [],
        input: [{ type: "text", text: "now" }],
        tools: [look],
        maxTurns: 30,
        caller: {},
        ...turn,
      },
      context,
    );
  } finally {
    await close();
  }
}
const bodies = (): Promise<any[]> =>
  Promise.all(upstream.requests.map(async (request) => JSON.parse((await request.bytes()).toString())));

describe("the prompt cache of the Messages protocol", () => {
  it.each([1, 15])(
    "holds at least four fifths of the input of a turn of 20 calls of the model, each with %i calls of tools",
    async (width) => {
      const calls = (number: number) => Array.from({ length: width }, (_, at) => call(number * 100 + at)).flat();
      const model = cachingModel((number) => (number < 20 ? { text: "", calls: calls(number) } : { text: "done", calls: [] }));
      upstream.answerAll(model.answer);
      const outcome = await play("messages", {}, { result: (at) => `result ${at} ${"x".repeat(800)}` });
      expect([outcome.output, outcome.usage?.modelCalls]).toEqual(["done", 20]);
      const { read, written, plain } = model.counted;
      expect(read / (read + written + plain)).toBeGreaterThan(0.8);
      expect(outcome.usage).toMatchObject({ cachedInputTokens: read, inputTokens: read + written + plain });
    },
  );

  it("holds the earlier turns of a conversation for its next turn", async () => {
    const model = cachingModel(() => ({ text: "done", calls: [] }));
    upstream.answerAll(model.answer);
    const first = [...looked(1, "x".repeat(4000)), said("user", "and now?")];
    await play("messages", { history: first.slice(0, -1), input: first.at(-1)!.parts });
    expect(model.counted.read).toBe(0);
    await play("messages", { history: [...first, said("assistant", "done")], input: [{ type: "text", text: "and then?" }] });
    expect(model.counted.read).toBeGreaterThan(1000);
  });

  it("is marked after tools where an agent has no instructions, and not at all where that is switched off", async () => {
    const agent = { name: "Agent", engine: "loop", tools: [], skills: [], core: false };
    await play("messages", { agent });
    await play("messages", { agent }, { options: { promptCache: false } });
    const [marked, plain] = await bodies();
    expect(marked.tools.at(-1).cache_control).toEqual({ type: "ephemeral" });
    expect(JSON.stringify(plain)).not.toContain("cache_control");
  });

  it("is not marked in Chat Completions", async () => {
    await play("chat-completions", {});
    expect(JSON.stringify(await bodies())).not.toContain("cache");
  });
});

describe.each<ports.ModelProtocol>(["messages", "chat-completions"])(
  "a context that is full, with a provider of %s",
  (protocol) => {
    it("holds short results of earlier turns first: the oldest become short, and no turn is left out", async () => {
      const history = [1, 2, 3, 4].flatMap((at) => looked(at, `result ${at} ${"x".repeat(2000)}`));
      await play(protocol, { history }, { options: { tokens: 2200 } });
      const sent = JSON.stringify((await bodies())[0].messages);
      for (const at of [1, 2, 3, 4]) expect(sent).toContain(`look at ${at}`);
      expect(sent).toContain("400 of 2009 characters are shown");
      expect(sent).toContain(`result 4 ${"x".repeat(2000)}`);
    });

    it("holds short results of its own turn, oldest first, once earlier turns are gone", async () => {
      let number = 0;
      upstream.answerAll(async (exchange) => {
        number++;
        await events(answerEvents(protocol, number < 12 ? { calls: call(number) } : { text: "done" }))(exchange);
      });
      const history = [said("user", "long ago"), said("assistant", "x".repeat(1000))];
      const outcome = await play(
        protocol,
        { history },
        { options: { tokens: 4000, summarize: false }, result: (at) => `result ${at} ${"x".repeat(1500)}` },
      );
      expect(outcome.output).toBe("done");
      const all = await bodies();
      const last = JSON.stringify(all.at(-1).messages);
      expect(last).not.toContain("long ago");
      expect(last).toContain(`result 11 ${"x".repeat(1500)}`);
      expect(last).not.toContain(`result 1 ${"x".repeat(1500)}`);
      expect(last).toContain("400 of 1509 characters are shown");
      for (const body of all) expect(JSON.stringify(body).length / 3.5).toBeLessThan(4800);
      // What was shortened makes room for some calls: the beginning stays the same, for the provider's cache.
      const beginnings = all.map(({ messages }) =>
        JSON.stringify(messages.slice(0, 4)).replaceAll(/,"cache_control":\{[^}]*\}/g, ""),
      );
      expect(new Set(beginnings).size).toBeLessThan(5);
      // The conversation keeps the results whole.
      expect(JSON.stringify(outcome.messages)).toContain(`result 1 ${"x".repeat(1500)}`);
    });

    it("becomes a summary that the model writes of the oldest turns, in which earlier summaries stay", async () => {
      const words = (body: any) => JSON.stringify(body.messages);
      let number = 0;
      upstream.answerAll(async (exchange) => {
        number++;
        await events(answerEvents(protocol, { text: number % 2 === 1 ? `SUMMARY ${number}` : "done" }))(exchange);
      });
      const told: ports.Saying[] = [];
      const history = [1, 2, 3, 4, 5].flatMap((at) => [
        said("user", `ask ${at} ${"x".repeat(1500)}`),
        said("assistant", `say ${at}`),
      ]);
      const options = { tokens: 2150 };
      const outcome = await play(protocol, { history }, { options, told });
      const [first, second] = await bodies();
      expect(words(first)).toMatch(/ask 1.*say 1.*ask 2.*ask 3/s);
      expect(words(first)).not.toContain("ask 5");
      expect(first.tools).toBeUndefined();
      expect(words(second)).toMatch(/You wrote this summary.*SUMMARY 1.*ask 5.*say 5.*now/s);
      expect(words(second)).not.toMatch(/ask [123]/);
      expect(outcome.summary).toEqual({
        text: "SUMMARY 1",
        messages: history.findIndex((message) => words({ messages: [message] }).includes("ask 5")),
      });
      expect(outcome.usage?.modelCalls).toBe(2);
      expect(told.filter(({ type }) => type === "summary")).toEqual([{ type: "summary", text: "SUMMARY 1" }]);

      const kept = [
        { role: "user" as const, parts: [{ type: "summary" as const, text: "SUMMARY 1" }] },
        ...history.slice(outcome.summary!.messages),
      ];
      const more = [6, 7, 8, 9].flatMap((at) => [said("user", `ask ${at} ${"x".repeat(1500)}`), said("assistant", `say ${at}`)]);
      const next = await play(protocol, { history: [...kept, ...more] }, { options });
      const [, , third, fourth] = await bodies();
      expect(words(third)).toMatch(/Summary of what came before: SUMMARY 1.*ask 5/s);
      expect(words(fourth)).toContain("SUMMARY 3");
      expect(words(fourth)).not.toContain("SUMMARY 1");
      expect(next.summary?.text).toBe("SUMMARY 3");
    });

    it("goes on without its oldest turns where the summary cannot be written, or is switched off", async () => {
      const history = [1, 2, 3, 4, 5].flatMap((at) => [
        said("user", `ask ${at} ${"x".repeat(1500)}`),
        said("assistant", `say ${at}`),
      ]);
      upstream.answerNext(json(400, { type: "error", error: { type: "invalid_request_error", message: "no" } }));
      upstream.answerAll(events(answerEvents(protocol, { text: "done" })));
      const failed = await play(protocol, { history }, { options: { tokens: 2150 } });
      const off = await play(protocol, { history }, { options: { tokens: 2150, summarize: false } });
      const agent = {
        name: "Agent",
        engine: "loop",
        tools: [],
        skills: [],
        core: false,
        context: { summarize: false, tokens: 2150 },
      };
      const agents = await play(protocol, { history, agent });
      const [, ...sent] = await bodies();
      expect(sent.length).toBe(3);
      for (const body of sent) expect(JSON.stringify(body.messages)).not.toContain("ask 1");
      for (const outcome of [failed, off, agents]) expect([outcome.output, outcome.summary]).toEqual(["done", undefined]);
    });

    it("is full with 1,500 messages, however short they are", async () => {
      const history = Array.from({ length: 800 }, (_, at) => [said("user", `ask ${at}`), said("assistant", `say ${at}`)]).flat();
      upstream.answerNext(events(answerEvents(protocol, { text: "SUMMARY" })));
      upstream.answerAll(events(answerEvents(protocol, { text: "done" })));
      const outcome = await play(protocol, { history });
      expect(outcome.summary).toEqual({ text: "SUMMARY", messages: 1100 });
      const [, second] = await bodies();
      expect(second.messages.length).toBeLessThan(510);
    });

    it("is made half as long where the provider says so, in a turn without earlier ones, too", async () => {
      const tooLong = json(400, { type: "error", error: { type: "invalid_request_error", message: "prompt is too long" } });
      upstream.answerNext(
        events(answerEvents(protocol, { calls: call(1) })),
        events(answerEvents(protocol, { calls: call(2) })),
        tooLong,
        events(answerEvents(protocol, { text: "done" })),
      );
      const outcome = await play(protocol, {}, { result: (at) => `result ${at} ${"x".repeat(3000)}` });
      expect(outcome.output).toBe("done");
      const [, , long, short] = await bodies();
      expect(JSON.stringify(short).length).toBeLessThan(JSON.stringify(long).length * 0.8);
    });

    it("is as large as the provider's list says, or as the agent's context.tokens says", async () => {
      const list = json(200, { data: [{ id: "echo-large", max_input_tokens: 3000 }] });
      const history = [1, 2, 3, 4, 5, 6].flatMap((at) => [
        said("user", `ask ${at} ${"x".repeat(1500)}`),
        said("assistant", `say ${at}`),
      ]);
      const options = { summarize: false };
      upstream.answerNext(list);
      upstream.answerAll(events(answerEvents(protocol, { text: "done" })));
      await play(protocol, { history }, { options, models: "discover" });
      const agent = { name: "Agent", engine: "loop", tools: [], skills: [], core: false, context: { tokens: 5000 } };
      await play(protocol, { history, agent }, { options, models: "discover" });
      const [, small, large] = await Promise.all(upstream.requests.map(async (request) => (await request.bytes()).toString()));
      expect(small).not.toContain("ask 1");
      expect(small).toContain("ask 6");
      expect(large).toContain("ask 1");
      expect(upstream.requests.map(({ method }) => method)).toEqual(["GET", "POST", "POST"]);
    });

    it("is measured with the tokens that the provider counts", async () => {
      const counts = (events_: string[]) =>
        events_.map((event) => event.replace(/"(input|prompt)_tokens":7/, '"$1_tokens":3000'));
      upstream.answerNext(
        events(counts(answerEvents(protocol, { calls: call(1) }))),
        events(counts(answerEvents(protocol, { calls: call(2) }))),
      );
      upstream.answerAll(events(answerEvents(protocol, { text: "done" })));
      const history = looked(0, "x".repeat(1000));
      await play(protocol, { history }, { options: { tokens: 2500, summarize: false }, result: () => "x".repeat(1000) });
      const [first, second] = await bodies();
      expect(JSON.stringify(first)).toContain("look at 0");
      expect(JSON.stringify(second)).not.toContain("look at 0");
    });
  },
);
