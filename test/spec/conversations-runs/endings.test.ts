import { functionTools } from "@portico/adapters/tools/functions";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEvents, type ScriptedAnswer, withoutEnd } from "../../harness/answer-events.ts";
import { type LoopedAgents, startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { events, type Step } from "../../harness/upstream-answers.ts";

const ran: unknown[] = [];
const tools = functionTools({ tools: [{ ...toolOf("act"), run: async (args) => (ran.push(args), "done") }] });
const protocols: readonly ports.ModelProtocol[] = ["messages", "chat-completions"];
const agents = Object.fromEntries(
  protocols.flatMap((provider) => [
    [provider, { provider, model: "echo-large", tools: ["act", "SendUserMessage"] }],
    [`${provider}-continue`, { provider, model: "echo-large", tools: ["act"], onMaxTokens: "continue" }],
  ]),
);

let looped: LoopedAgents;
beforeAll(async () => {
  looped = await startLoopedAgents(agents, { adapters: [tools] });
});
afterAll(() => looped[Symbol.asyncDispose]());
beforeEach(() => {
  looped.upstream.reset();
  ran.length = 0;
});

const act = { id: "call_act", name: "act", input: { of: "x" } };
const textOf = (message: any) => message.parts.map(({ text }: any) => text).join("");
/** Per protocol, its words. */
const said = {
  messages: { length: "max_tokens", filter: "refusal" },
  "chat-completions": { length: "length", filter: "content_filter" },
} as const;

describe.each(protocols)("an answer of %s that ends without its protocol's end (open points 13)", (protocol) => {
  it("is a failed turn, broken_answer, that keeps its text; the next turn sees it", async () => {
    looped.upstream.answerNext(events(withoutEnd(protocol, { text: "half an answer" })));
    const { event, data, receipt, messages } = await looped.ask(protocol, "go");
    expect([event, data.code, data.error]).toEqual([
      "query:error",
      "broken_answer",
      expect.stringContaining("ended before it was complete"),
    ]);
    expect(receipt).toMatchObject({
      output: "half an answer",
      outcome: { status: "failed", auto_completed: false },
      failure: { code: "broken_answer" },
    });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(textOf(messages[1])).toBe("half an answer");
    await looped.ask(protocol, "again", { conversationId: data.conversationId });
    expect(JSON.stringify((await looped.sent(2)).messages)).toMatch(/go.*half an answer.*again/);
  });

  it("its tool calls do not run", async () => {
    looped.upstream.answerNext(events(withoutEnd(protocol, { text: "I act.", calls: [act] })));
    const { data, receipt } = await looped.ask(protocol, "go");
    expect([data.code, ran, receipt.tool_calls]).toEqual(["broken_answer", [], []]);
  });
});

describe.each(protocols)("an answer of %s with many tool calls", (protocol) => {
  const calls = (count: number) => Array.from({ length: count }, (_, at) => ({ ...act, id: `call_${at}` }));

  it("runs 1,000 of them, also if all have the same ID", async () => {
    const repeated = calls(1_000).map((call) => ({ ...call, id: "call" }));
    looped.upstream.answerNext(
      events(answerEvents(protocol, { calls: repeated })),
      events(answerEvents(protocol, { text: "done" })),
    );
    const { event, data } = await looped.ask(protocol, "go");
    expect([event, data.result?.output, ran.length]).toEqual(["query:complete", "done", 1_000]);
  });

  it("is broken with 1,001: the turn fails, its text is kept, and none of them runs", async () => {
    looped.upstream.answerNext(events(answerEvents(protocol, { text: "I act.", calls: calls(1_001) })));
    const { event, data, receipt } = await looped.ask(protocol, "go");
    const words = "The provider's answer has more than 1000 tool calls.";
    expect([event, data.code, data.error, ran, receipt.tool_calls]).toEqual(["query:error", "broken_answer", words, [], []]);
    expect(receipt).toMatchObject({ output: "I act.", failure: { code: "broken_answer", message: words } });
  });
});

describe.each(protocols)("an answer of %s that did not simply stop (open points 13)", (protocol) => {
  const answer = (given: ScriptedAnswer) => looped.upstream.answerNext(events(answerEvents(protocol, given)));

  it.each([
    ["max_tokens", { text: "so far", stop: said[protocol].length }],
    [said[protocol].filter, { text: "so far", stop: said[protocol].filter }],
  ])("is completed with reason %s, and its receipt partial", async (reason, given) => {
    answer(given);
    const { data, receipt, messages } = await looped.ask(protocol, "go");
    expect(data.terminal).toMatchObject({ status: "completed", reason });
    expect(data.result.output).toBe("so far");
    expect(receipt).toMatchObject({
      output: "so far",
      interruption_reason: reason,
      outcome: { status: "partial", auto_completed: false },
    });
    expect(textOf(messages[1])).toBe("so far");
  });

  it.each([
    ["empty_answer", {}],
    ["empty_answer", { text: " \n" }],
    ["max_tokens", { stop: said[protocol].length }],
  ])("is completed with reason %s, and its receipt failed, where nothing came: %j", async (reason, given) => {
    answer(given);
    const { data, receipt } = await looped.ask(protocol, "go");
    expect([data.terminal.status, data.terminal.reason, receipt.interruption_reason]).toEqual(["completed", reason, reason]);
    expect(receipt.outcome.auto_completed).toBe(false);
    expect(receipt.outcome.status).toBe("failed");
    const next = await looped.ask(protocol, "again", { conversationId: data.conversationId });
    expect(next.data.result.output).toMatch(/^echo: .*again$/);
    const roles = (await looped.sent(2)).messages.map(({ role }: any) => role);
    expect(roles, "no message without words is sent").not.toContain("assistant");
  });

  it("its tool calls do not run if it was cut at its token limit", async () => {
    answer({ text: "I act.", calls: [act], stop: said[protocol].length });
    const { data, receipt } = await looped.ask(protocol, "go");
    expect([data.terminal.reason, ran, receipt.tool_calls]).toEqual(["max_tokens", [], []]);
  });

  it("is a plain success where the agent sent its message by SendUserMessage", async () => {
    answer({ calls: [{ id: "call_1", name: "SendUserMessage", input: { text: "Here it is" } }] });
    answer({});
    const { data, receipt } = await looped.ask(protocol, "go");
    expect(data.terminal).not.toHaveProperty("reason");
    expect(receipt.outcome).toEqual({ status: "success", auto_completed: true });
  });

  it("is continued if onMaxTokens is continue: one answer, one message, and its tool calls run", async () => {
    answer({ text: "one, ", stop: said[protocol].length });
    answer({ text: "two", calls: [act] });
    answer({ text: "done" });
    const { data, receipt, messages } = await looped.ask(`${protocol}-continue`, "go");
    expect([data.terminal.reason, receipt.output, ran]).toEqual([undefined, "done", [{ of: "x" }]]);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(messages[1].parts).toMatchObject([{ type: "text", text: "one, two" }, { type: "tool_call" }]);
    const asked = (await looped.sent(2)).messages;
    expect(asked.slice(-2).map(({ role }: any) => role)).toEqual(["assistant", "user"]);
    expect(JSON.stringify(asked)).toMatch(/one, .*Go on/);
    expect(JSON.stringify((await looped.sent(3)).messages)).not.toContain("Go on");
  });

  it("is continued at most three times in a turn", async () => {
    for (const text of ["one ", "two ", "three ", "four ", "five "]) answer({ text, stop: said[protocol].length });
    const { data, receipt } = await looped.ask(`${protocol}-continue`, "go");
    expect([data.terminal.reason, receipt.output, receipt.outcome.status]).toEqual([
      "max_tokens",
      "one two three four ",
      "partial",
    ]);
    expect(looped.upstream.requests.length).toBe(4);
  });
});

describe("the protocols' own words", () => {
  it("an overload that is told in the middle of an answer fails the turn with model_overloaded, its text kept", async () => {
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const [started, ping, ...said] = withoutEnd("messages", { text: "so far" });
    looped.upstream.answerNext(events([started!, ping!, ...said, `event: error\ndata: ${JSON.stringify(overloaded)}\n\n`]));
    const { event, data, receipt } = await looped.ask("messages", "go");
    expect([event, data.code, data.error]).toEqual([
      "query:error",
      "model_overloaded",
      expect.stringContaining("the error overloaded: Overloaded"),
    ]);
    expect([receipt.output, receipt.failure.code]).toEqual(["so far", "model_overloaded"]);
  });

  it("a refusal that Chat Completions tells beside its text is refusal", async () => {
    const [first, ...rest] = answerEvents("chat-completions", {});
    const refusal = first!.replace('"content":""', '"refusal":"I will not"');
    looped.upstream.answerNext(events([refusal, ...rest] satisfies Step[]));
    const { data, receipt } = await looped.ask("chat-completions", "go");
    expect([data.terminal.reason, receipt.output]).toEqual(["refusal", "I will not"]);
  });

  it("a full context is max_tokens, and the model is not asked to go on", async () => {
    looped.upstream.answerNext(events(answerEvents("messages", { text: "so far", stop: "model_context_window_exceeded" })));
    const { data } = await looped.ask("messages-continue", "go");
    expect([data.terminal.reason, looped.upstream.requests.length]).toEqual(["max_tokens", 1]);
  });
});
