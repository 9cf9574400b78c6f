import { functionTools } from "@portico/adapters/tools/functions";
import type { ports } from "@portico/core";
import type Anthropic from "@anthropic-ai/sdk";
import { afterEach, describe, expect, it } from "vitest";
import { type AskedAgents, type AskedAgentsOptions, startAskedAgents } from "../../harness/asked-agents.ts";
import { CALLERS, expectError, PROTOCOLS, type Protocol } from "../../harness/callers.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { promptOf, untilStopped } from "../../harness/scripted-agent.ts";

let agents: AskedAgents;
afterEach(() => agents.close());
const start = async (options?: AskedAgentsOptions) => void (agents = await startAskedAgents(options));

const ask = (protocol: Protocol, text: string, more: object = {}) =>
  agents.post(CALLERS[protocol].path, CALLERS[protocol].request(text, { model: "helper", ...more }));
const runs = async () => (await agents.service.call("owner", "GET", "/api/runs")).body.runs as any[];
const receiptOf = async (runId: string) =>
  (await agents.service.call("member", "GET", `/api/runs/${runId}/receipt`)).body.receipts.at(-1);
const onlyRun = async () => {
  const all = await runs();
  expect(all).toHaveLength(1);
  return all[0];
};

/** The whole answer to a text, through the vendor's own client library. */
const LIBRARIES = {
  messages: {
    async whole(text: string) {
      const { content, usage, stop_reason: end } = await agents.messages.messages.create(messagesOf(text));
      const said = content.map((block) => (block.type === "text" ? block.text : "")).join("");
      return { said, usage: [usage.input_tokens, usage.output_tokens], end };
    },
    async streamed(text: string) {
      const pieces: string[] = [];
      const stream = agents.messages.messages.stream(messagesOf(text)).on("text", (piece) => void pieces.push(piece));
      const { usage } = await stream.finalMessage();
      return { pieces, usage: [usage.input_tokens, usage.output_tokens] };
    },
  },
  "chat-completions": {
    async whole(text: string) {
      const { choices, usage } = await agents.chat.chat.completions.create(chatOf(text));
      const [choice] = choices;
      return {
        said: choice!.message.content,
        usage: [usage!.prompt_tokens, usage!.completion_tokens],
        end: choice!.finish_reason,
      };
    },
    async streamed(text: string) {
      const pieces: string[] = [];
      const stream = agents.chat.chat.completions.stream({ ...chatOf(text), stream_options: { include_usage: true } });
      stream.on("content", (piece) => void pieces.push(piece));
      const { usage } = await stream.finalChatCompletion();
      return { pieces, usage: [usage!.prompt_tokens, usage!.completion_tokens] };
    },
  },
};
const messagesOf = (content: string): Anthropic.MessageCreateParamsNonStreaming => ({
  ...{ model: "helper", max_tokens: 100 },
  messages: [{ role: "user", content }],
});
const chatOf = (content: string) => ({ model: "helper", messages: [{ role: "user" as const, content }] });

describe.each(PROTOCOLS)("an agent is a model for a client of %s", (protocol) => {
  const library = LIBRARIES[protocol];

  it("its answer has the text of the turn, and the sum of its model calls", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "text", delta: "Looking. " });
      await say({ type: "tool_call", callId: "c1", toolId: "look", name: "look", arguments: {} });
      await say({ type: "tool_result", callId: "c1", toolId: "look", result: { content: [], isError: false } });
      await say({ type: "text", delta: "Found." });
      return { usage: { inputTokens: 30, outputTokens: 12, modelCalls: 2 } };
    });
    const { said, usage, end } = await library.whole("look");
    expect(said).toBe("Looking. \n\nFound.");
    expect(usage).toEqual([30, 12]);
    expect(end).toBe(protocol === "messages" ? "end_turn" : "stop");
  });

  it("its stream has the text piece by piece, reasoning, and the usage", async () => {
    await start();
    const told = Promise.withResolvers<void>();
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "thinking", delta: "Hm" });
      await say({ type: "text", delta: "one " });
      // The rest waits until the client has the first piece.
      await told.promise;
      await say({ type: "text", delta: "two" });
      return { usage: { inputTokens: 3, outputTokens: 4, modelCalls: 1 } };
    });
    const reply = await ask(protocol, "x", {
      stream: true,
      ...(protocol === "chat-completions" && { stream_options: { include_usage: true } }),
    });
    let text = "";
    for (let chunk = await reply.read(); chunk; chunk = await reply.read()) {
      text += chunk.toString();
      if (text.includes("one ")) told.resolve();
    }
    CALLERS[protocol].assertStream(text);
    expect(text).toContain("Hm");
    const { pieces, usage } = await library.streamed("x");
    expect(pieces.join("")).toBe("one two");
    expect(usage).toEqual([3, 4]);
  });

  it("the last message is the input, and the messages before it are the history", async () => {
    await start();
    const seen: ports.AgentTurn[] = [];
    agents.service.engine.otherwise(async (turn, { say }) => void (seen.push(turn), await say({ type: "text", delta: "ok" })));
    const messages = [
      { role: "user", content: "My name is Ada" },
      { role: "assistant", content: "Hello Ada" },
      { role: "user", content: "Who am I?" },
    ];
    expect((await ask(protocol, "", { messages })).status).toBe(200);
    expect(seen[0]?.history).toEqual([
      { role: "user", parts: [{ type: "text", text: "My name is Ada" }] },
      { role: "assistant", parts: [{ type: "text", text: "Hello Ada" }] },
    ]);
    expect(promptOf(seen[0]!)).toBe("Who am I?");
    const run = await onlyRun();
    expect(run).toMatchObject({ user_id: "member", agent_id: "helper", status: "completed", title: "Who am I?" });
    expect(run).toMatchObject({ background: true, inbound: { origin: "model", displayName: "helper" } });
    expect(await receiptOf(run.run_id)).toMatchObject({ input: "Who am I?", output: "ok", outcome: { status: "success" } });
    expect((await agents.service.call("member", "GET", "/api/conversations")).body.conversations).toEqual([]);
  });

  it("tools of the request are refused by name, and no turn begins", async () => {
    await start();
    const schema = { type: "object", properties: {} };
    const tools =
      protocol === "messages"
        ? [{ name: "look", input_schema: schema }]
        : [{ type: "function", function: { name: "look", parameters: schema } }];
    const { message, type } = await expectError(await ask(protocol, "x", { tools }), 400, protocol);
    expect(type).toBe("invalid_request_error");
    expect(message).toMatch(/^tools: /);
    expect(await runs()).toEqual([]);
  });

  it("a caller that leaves stops the turn", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, context) => {
      await context.say({ type: "text", delta: "so far" });
      return untilStopped(context);
    });
    const reply = await ask(protocol, "x", { stream: true });
    for (let text = ""; !text.includes("so far");) text += String(await reply.read());
    reply.leave();
    await expect.poll(async () => (await runs())[0]?.status).toBe("idle");
    const run = await onlyRun();
    expect(run.interruption_reason).toBe("caller_left");
    expect(await receiptOf(run.run_id)).toMatchObject({ output: "so far", outcome: { status: "partial" } });
  });

  it("a turn that fails is an error of the protocol, and is not sent again if a tool ran", async () => {
    await start();
    agents.service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "tool_call", callId: "c1", toolId: "look", name: "look", arguments: {} });
      throw new Error("secret words");
    });
    const reply = await ask(protocol, "x");
    expect(reply.headers["x-should-retry"]).toBe("false");
    const { message } = await expectError(reply, 500, protocol);
    const run = await onlyRun();
    expect(message).toBe(`The turn failed (internal_error, run ${run.run_id})`);
  });
});

const tool = { ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }), run: async () => "erased" };

describe("a turn of a model that waits for a person", () => {
  it("is told in words, with its address, and goes on without its caller", async () => {
    await start({
      agents: new Map([["helper", { name: "Helper", tools: ["erase"] }]]),
      adapters: [functionTools({ tools: [tool] })],
      models: { approvalsUrl: (runId) => `https://desk.example/#/runs/${runId}` },
    });
    const reply = await ask("messages", "use erase");
    expect(reply.status).toBe(200);
    const answer = (await reply.json()) as any;
    const { run_id: id, status, approvals } = await onlyRun();
    expect(status).toBe("running");
    expect(CALLERS.messages.textOf(answer)).toContain(
      `erase (${approvals[0].call_id}). Decide here: https://desk.example/#/runs/${id}`,
    );
    expect(answer.stop_reason).toBe("end_turn");
    await agents.service.call("member", "POST", `/api/runs/${id}/approvals/${approvals[0].call_id}`, { decision: "approve" });
    await expect.poll(async () => (await onlyRun()).status).toBe("completed");
    expect((await receiptOf(id)).tool_calls).toMatchObject([{ tool_id: "erase", is_error: false }]);
  });
});
