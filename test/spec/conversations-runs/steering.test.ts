import { functionTools } from "@portico/adapters/tools/functions";
import { defineAdapter, ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Holder } from "../../harness/agent-app.ts";
import { answerEvents } from "../../harness/answer-events.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { keptOf, type LoopedAgents, startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { after, events, never } from "../../harness/upstream-answers.ts";

const protocols: readonly ports.ModelProtocol[] = ["messages", "chat-completions"];
let work: { readonly begun: PromiseWithResolvers<void>; readonly done: Gate };
const newWork = () => void (work = { begun: Promise.withResolvers<void>(), done: createGate() });
const tools = functionTools({
  tools: [
    { ...toolOf("work"), run: () => (work.begun.resolve(), work.done.opened.then(() => "worked")) },
    { ...toolOf("pay", { requiresConfirmation: true, riskLevel: "high" }), run: async () => "paid" },
  ],
});
const agents = {
  ...Object.fromEntries(
    protocols.map((provider) => [provider, { provider, model: "echo-large", tools: ["work", "pay"], maxTurns: 3 }]),
  ),
  deaf: { engine: "scripted" },
  caster: { provider: "messages", model: "echo-large", outputSchema: { type: "object", required: ["degrees"] } },
  hasty: { engine: "hasty" },
};
/** An engine that asks what its user said when no model of it reads it any more: as it ends, and when it is stopped. */
const hasty = defineAdapter({
  name: "agent-engines/hasty",
  port: ports.agentEngines,
  needs: {},
  open: (): ports.AgentEngine => ({
    id: "hasty",
    canSteer: true,
    async run(_turn, { signal, steering }) {
      const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
      await Promise.race([work.done.opened, stopped]);
      const asked = steering!();
      if (signal.aborted) await asked;
      return {
        output: "done",
        messages: [{ role: "assistant", parts: [{ type: "text", text: "done" }] }],
        toolCalls: [],
        end: "completed",
      };
    },
  }),
});

let looped: LoopedAgents;
beforeAll(async () => {
  looped = await startLoopedAgents(agents, { adapters: [tools, hasty()] });
});
afterAll(() => looped[Symbol.asyncDispose]());
beforeEach(() => {
  looped.upstream.reset();
  newWork();
});

const steer = (clientRequestId: string, messageId: string, text: string, holder: Holder = "owner") =>
  looped.service.call(holder, "POST", `/api/query/client-requests/${clientRequestId}/steer`, { messageId, text });
const answer = (protocol: ports.ModelProtocol, given: Parameters<typeof answerEvents>[1]) =>
  events(answerEvents(protocol, given));
const workCall = (number = 1) => ({ id: `call_${number}`, name: "work", input: {} });
const begin = async (agentId: string, options: object = {}) => {
  const { clientRequestId } = await looped.client.start("Begin", {}, { agentId, ...options });
  const { runId, sessionId, conversationId } = await looped.client.event("query:started", clientRequestId);
  return { clientRequestId, runId, sessionId, conversationId };
};
const saidTo = (clientRequestId: string) =>
  looped.client.of(clientRequestId).flatMap(({ data: { message } }) => (message?.type === "steering" ? [message] : []));
/** Role and text of each message that the model was sent. */
const sentTo = async (number: number) => JSON.stringify((await looped.sent(number)).messages);
const textsOf = (messages: readonly any[]) =>
  messages.map(({ role, parts }) => [role, parts.map(({ type, text }: any) => text ?? type).join()]);

describe.each(protocols)("a message to a turn that goes on, with a provider of %s", (protocol) => {
  it("is told to the agent after the tools that run, stays in the conversation where it was told, and is heard by clients", async () => {
    looped.upstream.answerNext(
      answer(protocol, { text: "I work.", calls: [workCall()] }),
      answer(protocol, { text: "Then in blue." }),
      answer(protocol, { text: "Next." }),
    );
    const turn = await begin(protocol);
    await work.begun.promise;
    const first = await steer(turn.clientRequestId, "message-1", "In blue, please");
    expect(first).toMatchObject({ status: 202, body: { ok: true, clientRequestId: turn.clientRequestId, status: "pending" } });
    expect((await steer(turn.clientRequestId, "message-2", "And large")).status).toBe(202);
    const running = await looped.service.call("owner", "GET", `/api/conversations/${turn.conversationId}/running-turn`);
    expect(running.body.turn.steering).toEqual([
      { messageId: "message-1", text: "In blue, please" },
      { messageId: "message-2", text: "And large" },
    ]);
    work.done.open();
    const { data } = await looped.client.ended(turn.clientRequestId);
    expect(data.terminal).toMatchObject({ status: "completed" });
    expect(data.terminal).not.toHaveProperty("reason");
    expect(await sentTo(2)).toMatch(/Begin.*I work\..*worked.*In blue, please.*And large/);
    expect(saidTo(turn.clientRequestId).map(({ role, content }) => [role, content])).toEqual([
      ["user", { messageId: "message-1", text: "In blue, please" }],
      ["user", { messageId: "message-2", text: "And large" }],
    ]);
    const { messages } = await keptOf(looped.service, data);
    expect(textsOf(messages)).toEqual([
      ["user", "Begin"],
      ["assistant", "I work.,tool_call"],
      ["tool", "tool_result"],
      ["user", "In blue, please"],
      ["user", "And large"],
      ["assistant", "Then in blue."],
    ]);
    expect(messages.map(({ steers }) => steers === true)).toEqual([false, false, false, true, true, false]);
    const next = await looped.ask(protocol, "And now?", { conversationId: turn.conversationId });
    expect(next.data.terminal.status).toBe("completed");
    expect(await sentTo(3)).toMatch(/Begin.*worked.*In blue, please.*And large.*Then in blue\..*And now\?/);
  });

  it("that comes while the model gives its last answer is answered in the same turn", async () => {
    const gate = createGate();
    looped.upstream.answerNext(after(gate.opened, answer(protocol, { text: "Done." })), answer(protocol, { text: "Also that." }));
    const { clientRequestId } = await begin(protocol);
    await looped.upstream.request(1);
    await steer(clientRequestId, "message-1", "Also that?");
    gate.open();
    const { data } = await looped.client.ended(clientRequestId);
    expect(data.result.output).toBe("Also that.");
    const { messages, receipt } = await keptOf(looped.service, data);
    expect(textsOf(messages)).toEqual([
      ["user", "Begin"],
      ["assistant", "Done."],
      ["user", "Also that?"],
      ["assistant", "Also that."],
    ]);
    expect(receipt.outcome.status).toBe("success");
  });

  it("is told once the call for which the turn waits is decided", async () => {
    looped.upstream.answerNext(
      answer(protocol, { calls: [{ id: "call_pay", name: "pay", input: {} }] }),
      answer(protocol, { text: "Paid." }),
    );
    const { clientRequestId, runId } = await begin(protocol);
    const calls = () => looped.client.of(clientRequestId).filter(({ data }) => data.message?.type === "approval");
    await expect.poll(calls).toHaveLength(1);
    expect((await steer(clientRequestId, "message-1", "With a receipt")).status).toBe(202);
    const { callId } = calls()[0]!.data.message.content;
    await looped.service.call("owner", "POST", `/api/runs/${runId}/approvals/${callId}`, { decision: "approve" });
    await looped.client.ended(clientRequestId);
    expect(await sentTo(2)).toMatch(/Begin.*paid.*With a receipt/);
  });

  it("that was told before the turn waited for a person is told once, and stays", async () => {
    looped.upstream.answerNext(
      answer(protocol, { calls: [workCall()] }),
      answer(protocol, { calls: [{ id: "call_pay", name: "pay", input: {} }] }),
      answer(protocol, { text: "Paid." }),
    );
    const { clientRequestId, runId } = await begin(protocol);
    await work.begun.promise;
    await steer(clientRequestId, "message-1", "In blue, please");
    work.done.open();
    const calls = () => looped.client.of(clientRequestId).filter(({ data }) => data.message?.type === "approval");
    await expect.poll(calls).toHaveLength(1);
    await looped.service.call("owner", "POST", `/api/runs/${runId}/approvals/${calls()[0]!.data.message.content.callId}`, {
      decision: "approve",
    });
    const { data } = await looped.client.ended(clientRequestId);
    expect((await sentTo(3)).match(/In blue, please/g)).toHaveLength(1);
    expect(saidTo(clientRequestId)).toHaveLength(1);
    expect(textsOf((await keptOf(looped.service, data)).messages)).toEqual([
      ["user", "Begin"],
      ["assistant", "tool_call"],
      ["tool", "tool_result"],
      ["user", "In blue, please"],
      ["assistant", "tool_call"],
      ["tool", "tool_result"],
      ["assistant", "Paid."],
    ]);
    expect((await steer(clientRequestId, "message-1", "In blue, please")).body).toMatchObject({ status: "taken" });
  });

  it("is told with the first call of a turn that waits in its session", async () => {
    looped.upstream.answerNext(
      answer(protocol, { text: "I work.", calls: [workCall()] }),
      answer(protocol, { text: "Worked." }),
      answer(protocol, { text: "In blue." }),
    );
    const { sessionId } = await begin(protocol);
    await work.begun.promise;
    const { clientRequestId } = await looped.client.followUp(sessionId, "Second");
    expect((await steer(clientRequestId, "message-1", "In blue, please")).status).toBe(202);
    work.done.open();
    const { data } = await looped.client.ended(clientRequestId);
    expect(data.result.output).toBe("In blue.");
    expect(await sentTo(3)).toMatch(/Second.*In blue, please/);
    expect(textsOf((await keptOf(looped.service, data)).messages).slice(-3)).toEqual([
      ["user", "Second"],
      ["user", "In blue, please"],
      ["assistant", "In blue."],
    ]);
  });

  it("is not told to a turn that may call its model no more, and does not come into the conversation", async () => {
    looped.upstream.answerNext(answer(protocol, { text: "I work.", calls: [workCall()] }));
    const turn = await begin(protocol, { maxTurns: 1 });
    await work.begun.promise;
    await steer(turn.clientRequestId, "message-1", "Too late");
    work.done.open();
    const { data } = await looped.client.ended(turn.clientRequestId);
    expect(data.terminal.reason).toBe("max_turns");
    expect(textsOf((await keptOf(looped.service, data)).messages).map(([role]) => role)).toEqual(["user", "assistant", "tool"]);
    expect((await steer(turn.clientRequestId, "message-1", "Too late")).body).toMatchObject({
      status: "not_taken",
      duplicate: true,
    });
  });
});

describe("a message to a turn that goes on", () => {
  it("with the same ID is told once, and says what became of it also after the end", async () => {
    looped.upstream.answerNext(
      answer("messages", { text: "I work.", calls: [workCall()] }),
      answer("messages", { text: "Yes." }),
    );
    const { clientRequestId } = await begin("messages");
    await work.begun.promise;
    const answers = await Promise.all(Array.from({ length: 5 }, () => steer(clientRequestId, "message-1", "Blue")));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202]);
    expect(answers.filter(({ body }) => !body.duplicate)).toHaveLength(1);
    const other = await steer(clientRequestId, "message-1", "Red");
    expect(other).toMatchObject({ status: 409, body: { code: "CLIENT_REQUEST_BODY_MISMATCH" } });
    work.done.open();
    await looped.client.ended(clientRequestId);
    expect(saidTo(clientRequestId)).toHaveLength(1);
    expect((await steer(clientRequestId, "message-1", "Blue")).body).toMatchObject({ status: "taken", duplicate: true });
    expect(await steer(clientRequestId, "message-2", "Green")).toMatchObject({ status: 409, body: { code: "turn_ended" } });
  });

  it("stays in a turn that is stopped after it was told", async () => {
    looped.upstream.answerNext(answer("messages", { text: "I work.", calls: [workCall()] }), never());
    const { clientRequestId, sessionId } = await begin("messages");
    await work.begun.promise;
    await steer(clientRequestId, "message-1", "Blue");
    work.done.open();
    await looped.upstream.request(2);
    expect((await steer(clientRequestId, "message-2", "Green")).status).toBe(202);
    looped.client.socket.emit("query:abort", { sessionId });
    const { data } = await looped.client.ended(clientRequestId);
    expect(data.terminal.status).toBe("interrupted");
    expect(textsOf((await keptOf(looped.service, data)).messages)).toEqual([
      ["user", "Begin"],
      ["assistant", "I work.,tool_call"],
      ["tool", "tool_result"],
      ["user", "Blue"],
    ]);
    expect((await steer(clientRequestId, "message-2", "Green")).body).toMatchObject({ status: "not_taken" });
  });

  it("is the newest message of a model that had to correct its answer before", async () => {
    const gate = createGate();
    looped.upstream.answerNext(
      answer("messages", { text: "warm" }),
      after(gate.opened, answer("messages", { text: '{"degrees":20}' })),
      answer("messages", { text: '{"degrees":68}' }),
    );
    const { clientRequestId } = await begin("caster");
    await looped.upstream.request(2);
    await steer(clientRequestId, "message-1", "In Fahrenheit");
    gate.open();
    const { data } = await looped.client.ended(clientRequestId);
    expect(data.result.output).toBe('{"degrees":68}');
    expect(textsOf((await looped.sent(3)).messages.map(({ role, content: parts }: any) => ({ role, parts })))).toEqual([
      ["user", "Begin"],
      ["assistant", '{"degrees":20}'],
      ["user", "In Fahrenheit"],
    ]);
  });

  it.each(["ends", "is stopped"])("is not told to an engine that asks for it as its turn %s", async (how) => {
    const { clientRequestId, sessionId } = await begin("hasty");
    expect((await steer(clientRequestId, "message-1", "Too late")).status).toBe(202);
    if (how === "ends") work.done.open();
    else looped.client.socket.emit("query:abort", { sessionId });
    const { data } = await looped.client.ended(clientRequestId);
    expect(data.terminal.status).toBe(how === "ends" ? "completed" : "interrupted");
    expect((await steer(clientRequestId, "message-1", "Too late")).body).toMatchObject({ status: "not_taken" });
    expect(saidTo(clientRequestId)).toEqual([]);
    expect(textsOf((await keptOf(looped.service, data)).messages).flat()).not.toContain("Too late");
  });

  it("is no message that can be replaced, and its turn is made again from the first message", async () => {
    looped.upstream.answerNext(
      answer("messages", { text: "I work.", calls: [workCall()] }),
      answer("messages", { text: "Blue it is." }),
      answer("messages", { text: "Again." }),
    );
    const turn = await begin("messages");
    await work.begun.promise;
    await steer(turn.clientRequestId, "message-1", "Blue");
    work.done.open();
    const { messages } = await keptOf(looped.service, (await looped.client.ended(turn.clientRequestId)).data);
    const { conversationId } = turn;
    const [steering, last] = [messages.find(({ steers }) => steers), messages.at(-1)];
    const ask = (body: object) => looped.service.call("owner", "POST", "/api/agents/messages/ask", { conversationId, ...body });
    expect(await ask({ prompt: "Red", replaces: steering.id })).toMatchObject({
      status: 400,
      body: { code: "wrong_message_kind" },
    });
    const again = await ask({ regenerates: last.id });
    expect(again.status).toBe(200);
    expect(JSON.stringify((await looped.sent(3)).messages)).toMatch(/^((?!Blue).)*Begin((?!Blue).)*$/);
  });

  it("is refused for the turn of another user, for an unknown one, without a user, and beyond 16 messages", async () => {
    looped.upstream.answerNext(
      answer("messages", { text: "I work.", calls: [workCall()] }),
      answer("messages", { text: "Yes." }),
    );
    const { clientRequestId } = await begin("messages");
    await work.begun.promise;
    const missing = { status: 404, body: { code: "request_not_found" } };
    expect(await steer(clientRequestId, "message-1", "Mine", "member")).toMatchObject(missing);
    expect(await steer("unknown-request-id", "message-1", "Mine")).toMatchObject(missing);
    expect(await steer(clientRequestId, "message-1", "Mine", "service")).toMatchObject({ status: 403 });
    for (const text of ["", "x".repeat(10_001)])
      expect(await steer(clientRequestId, "message-1", text)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    for (let number = 1; number <= 16; number++)
      expect((await steer(clientRequestId, `message-${number}`, `Word ${number}`)).status).toBe(202);
    expect(await steer(clientRequestId, "message-17", "One more")).toMatchObject({
      status: 409,
      body: { code: "too_many_messages" },
    });
    work.done.open();
    await looped.client.ended(clientRequestId);
    expect(saidTo(clientRequestId)).toHaveLength(16);
  });

  it("is refused where the agent's engine takes none", async () => {
    const gate = createGate();
    looped.service.engine.on("Begin", async () => void (await gate.opened));
    const { clientRequestId } = await begin("deaf");
    expect(await steer(clientRequestId, "message-1", "Listen")).toMatchObject({
      status: 409,
      body: { code: "steering_unsupported" },
    });
    gate.open();
    await looped.client.ended(clientRequestId);
  });
});
