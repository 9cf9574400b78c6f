import { setTimeout as wait } from "node:timers/promises";
import { functionTools } from "@portico/adapters/tools/functions";
import { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEvents, withoutEnd } from "../../harness/answer-events.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { type LoopedAgents, keptOf, startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { events, json } from "../../harness/upstream-answers.ts";

const ran: string[] = [];
let hanging: Gate;
let atWork: () => void = () => {};
const tools = functionTools({
  tools: [
    { ...toolOf("pay"), run: async () => (ran.push("pay"), atWork(), "paid 7 coins") },
    { ...toolOf("hang", { idempotent: true }), run: () => (ran.push("hang"), atWork(), hanging.opened.then(() => "late")) },
  ],
});
const protocols: readonly ports.ModelProtocol[] = ["messages", "chat-completions"];
const agents = Object.fromEntries(
  protocols.map((provider) => [provider, { provider, model: "echo-large", tools: ["pay", "hang"] }]),
);

let looped: LoopedAgents;
beforeAll(async () => {
  looped = await startLoopedAgents(agents, { adapters: [tools] });
});
afterAll(() => looped[Symbol.asyncDispose]());
beforeEach(() => {
  looped.upstream.reset();
  ran.length = 0;
  hanging = createGate();
});

const pay = { id: "call_pay", name: "pay", input: {} };
const hang = { id: "call_hang", name: "hang", input: { of: "x" } };
const resultsOf = (messages: readonly any[]) =>
  messages.flatMap(({ role, parts }) =>
    role === "tool" ? parts.map(({ callId, result }: any) => [callId, result.content[0].text, result.isError]) : [],
  );

describe.each(protocols)("a turn with a provider of %s that broke off (open points 13)", (protocol) => {
  it("keeps the calls that finished, with their results, where it failed; the next turn's model is told", async () => {
    looped.upstream.answerNext(
      events(answerEvents(protocol, { text: "I pay.", calls: [pay] })),
      events(withoutEnd(protocol, { text: "Now" })),
    );
    const { data, messages, receipt } = await looped.ask(protocol, "go");
    expect([data.code, ran]).toEqual(["broken_answer", ["pay"]]);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(messages[1].parts).toMatchObject([
      { type: "text", text: "I pay." },
      { type: "tool_call", callId: "call_pay" },
    ]);
    expect(resultsOf(messages)).toEqual([["call_pay", "paid 7 coins", false]]);
    expect(receipt.tool_calls).toMatchObject([{ id: "call_pay", is_error: false }]);
    await looped.ask(protocol, "and now?", { conversationId: data.conversationId });
    expect(JSON.stringify((await looped.sent(3)).messages)).toMatch(/go.*I pay.*call_pay.*paid 7 coins.*Now.*and now/);
  });

  it("says of a call that was open when it was stopped that its effect is unknown", async () => {
    const both = Promise.withResolvers<void>();
    atWork = () => void (ran.length === 2 && both.resolve());
    looped.upstream.answerNext(events(answerEvents(protocol, { calls: [pay, hang] })));
    const { client, service } = looped;
    const { clientRequestId } = await client.start("go", {}, { agentId: protocol });
    await both.promise;
    const paid = () => client.of(clientRequestId).some(({ data }) => data.message?.type === "tool_result");
    await expect.poll(paid).toBe(true);
    const { sessionId } = await client.event("query:started", clientRequestId);
    client.socket.emit("query:abort", { sessionId });
    const { data } = await client.ended(clientRequestId);
    expect(data.terminal.status).toBe("interrupted");
    const { messages } = await keptOf(service, data);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(resultsOf(messages)).toEqual([
      ["call_pay", "paid 7 coins", false],
      ["call_hang", expect.stringContaining("effect is unknown"), true],
    ]);
    const next = await looped.ask(protocol, "and now?", { conversationId: data.conversationId });
    expect(next.event).toBe("query:complete");
    const sent = JSON.stringify((await looped.sent(2)).messages);
    expect(sent).toMatch(/call_pay.*call_hang.*paid 7 coins.*effect is unknown.*and now/);
  });
});

/**
 * Before a turn writes to its transcript, `act` is called in place of the write. Processes of a cluster write with `appendAll`, on condition
 * that the turn is still theirs. Returns what puts the log back.
 */
function onTranscript(log: ports.EventLog, act: (stream: string, write: () => Promise<any>) => Promise<any>): () => void {
  const { append, appendAll } = log;
  log.append = (stream, entry) => act(stream, () => append(stream, entry));
  log.appendAll = (entries, more) => {
    const isTranscript = entries.length === 1 && entries[0]!.stream.startsWith("turns/");
    const write = () => appendAll(entries, more);
    return isTranscript ? act(entries[0]!.stream, write) : write();
  };
  return () => Object.assign(log, { append, appendAll });
}

describe("a log that is away for a moment when a tool is called", () => {
  it.each([
    ["before it wrote anything", false],
    ["after it wrote, and its answer was lost", true],
  ])("%s: the tool runs once the call is written, and the transcript holds everything once", async (_what, isWritten) => {
    const log = looped.service.app.port(ports.log);
    const fail = Promise.withResolvers<string>();
    const back = onTranscript(log, async (stream, write) => {
      back();
      if (isWritten) await write();
      fail.resolve(stream);
      throw new ports.LogUnavailable("away");
    });
    looped.upstream.answerNext(events(answerEvents("messages", { calls: [pay] })));
    const { event } = await looped.ask("messages", "go");
    expect([event, ran]).toEqual(["query:complete", ["pay"]]);
    const kept: any[] = [];
    for await (const entry of log.read(await fail.promise)) kept.push(...(entry as any).entry.events);
    const messages = kept.flatMap(({ data }) => data.message?.seq ?? []);
    expect(messages).toEqual(Array.from({ length: kept.at(-1).data.seq }, (_, at) => at + 1));
    expect(kept.map((each) => each.event).filter((name) => name !== "query:message")).toEqual([
      "query:started",
      "query:complete",
    ]);
  });

  it("the tool of a turn that is stopped meanwhile never runs", async () => {
    const log = looped.service.app.port(ports.log);
    const failed = Promise.withResolvers<void>();
    const back = onTranscript(log, async () => {
      failed.resolve();
      throw new ports.LogUnavailable("away");
    });
    looped.upstream.answerNext(events(answerEvents("messages", { calls: [pay] })));
    const { client } = looped;
    const { clientRequestId } = await client.start("go", {}, { agentId: "messages" });
    await failed.promise;
    const { sessionId } = await client.event("query:started", clientRequestId);
    client.socket.emit("query:abort", { sessionId });
    // The process that executes the turn may be another one. It hears of the abort a little later, and answers nothing.
    await wait(500);
    back();
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("interrupted");
    expect(ran).toEqual([]);
  });

  it("a refusal of the next call keeps what was done before", async () => {
    looped.upstream.answerNext(
      events(answerEvents("messages", { calls: [pay] })),
      json(400, { error: { type: "invalid_request_error", message: "no" } }),
    );
    const { data, messages } = await looped.ask("messages", "go");
    expect([data.code, resultsOf(messages)]).toEqual(["model_refused", [["call_pay", "paid 7 coins", false]]]);
  });
});
