import { functionTools } from "@portico/adapters/tools/functions";
import { defineAdapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { answerEvents } from "../../harness/answer-events.ts";
import { type LoopedAgents, startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { events } from "../../harness/upstream-answers.ts";

/** What the tool did, in order. */
let done: unknown[];
let looped: LoopedAgents;

const pay = (more: Partial<ports.ToolDefinition> = {}) =>
  functionTools({
    tools: [
      {
        ...toolOf("pay", { riskLevel: "critical", requiresConfirmation: true, ...more }),
        run: async (args: unknown) => (done.push(args), "paid"),
      },
    ],
  });
/** An engine that gives two equal calls one ID. */
const repeating = defineAdapter({
  name: "agent-engines/repeating",
  port: ports.agentEngines,
  needs: {},
  open: (): ports.AgentEngine => ({
    id: "repeating",
    canPause: true,
    async run({ progress }, { needsApproval, callTool, signal }) {
      const call = { callId: "c", toolId: "pay", arguments: { of: "1" } };
      if (!progress && (await needsApproval!(call))) throw new ports.TurnPaused([call, call], {});
      const results = [await callTool(call, signal), await callTool(call, signal)];
      const output = results.map(({ isError }) => (isError ? "refused" : "paid")).join(" and ");
      return { output, messages: [], toolCalls: [], end: "completed" };
    },
  }),
});

beforeEach(async () => {
  done = [];
  looped = await startLoopedAgents(
    {
      messages: { provider: "messages", model: "echo-large", tools: ["pay"] },
      "chat-completions": { provider: "chat-completions", model: "echo-large", tools: ["pay"] },
      repeating: { engine: "repeating", tools: ["pay"] },
    },
    { adapters: [pay(), repeating()] },
  );
});
afterEach(() => looped[Symbol.asyncDispose]());

/** Asks an agent, and waits until two calls wait. */
const asked = async (agentId: string) => {
  const { client } = looped;
  const { clientRequestId } = await client.start("go", {}, { agentId });
  const told = () =>
    client.of(clientRequestId).flatMap(({ data: { message } }) => (message?.type === "approval" ? [message] : []));
  await expect.poll(told).toHaveLength(2);
  const { runId } = await client.event("query:started", clientRequestId);
  const decide = (at: number, decision: "approve" | "reject") =>
    looped.service.call("owner", "POST", `/api/runs/${runId}/approvals/${told()[at].content.callId}`, { decision });
  return { clientRequestId, runId, told, decide };
};

it.each(["messages", "chat-completions"] as const)(
  "calls to which a model gives one ID are each decided once (%s), and have IDs of their own",
  async (protocol) => {
    const call = (of: string) => ({ id: "call_a", name: "pay", input: { of } });
    looped.upstream.answerNext(events(answerEvents(protocol, { calls: [call("1"), call("2")] })));
    looped.upstream.answerNext(events(answerEvents(protocol, { calls: [call("3")] })));
    const { clientRequestId, runId, told, decide } = await asked(protocol);
    expect((await decide(1, "approve")).status).toBe(200);
    expect((await decide(0, "reject")).status).toBe(200);
    // Then the model calls the tool in its next answer, with the ID of its calls before.
    await expect.poll(() => told()).toHaveLength(5);
    expect(done).toEqual([{ of: "2" }]);
    expect((await decide(4, "approve")).status).toBe(200);
    await looped.client.ended(clientRequestId);
    expect(done).toEqual([{ of: "2" }, { of: "3" }]);
    const { body } = await looped.service.call("owner", "GET", `/api/runs/${runId}/receipt`);
    const calls: readonly any[] = body.receipts[0].tool_calls;
    expect(calls.map(({ is_error }) => is_error)).toEqual([true, false, false]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    // The call and its result.
    const sent = JSON.stringify(await looped.sent(3));
    for (const { id } of calls) expect(sent.split(`"${id}"`)).toHaveLength(3);
  },
);

it("calls to which an engine gives one ID are decided in their order", async () => {
  const { clientRequestId, decide } = await asked("repeating");
  expect((await decide(1, "reject")).status).toBe(200);
  expect((await decide(0, "approve")).status).toBe(200);
  expect((await looped.client.ended(clientRequestId)).data.result.output).toBe("paid and refused");
  expect(done).toEqual([{ of: "1" }]);
});
