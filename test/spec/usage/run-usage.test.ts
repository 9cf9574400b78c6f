import { recordUsage } from "@portico/adapters/usage/records";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type LoopedAgents, startLoopedAgents, upstreamProviders } from "../../harness/looped-agents.ts";
import { createScriptedEngine } from "../../harness/scripted-agent.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json } from "../../harness/upstream-answers.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const prices = {
  currency: "EUR",
  models: [{ provider: "messages", model: "echo-large", from: "2026-01-01", input: 1_000_000, output: 2_000_000 }],
};
/** 7 tokens in and 11 out: 29 EUR. */
const answer = json(200, {
  ...{ id: "msg_1", type: "message", role: "assistant", model: "echo-large" },
  content: [{ type: "text", text: "one two" }],
  ...{ stop_reason: "end_turn", stop_sequence: null, usage: { input_tokens: 7, output_tokens: 11 } },
});
const refusal = json(400, { type: "error", error: { type: "invalid_request_error", message: "no" } });

describe("a run of an agent", () => {
  let agents: LoopedAgents;
  beforeAll(async () => {
    agents = await startLoopedAgents({ talker: { provider: "messages" } }, { adapters: [recordUsage({ prices })] });
  });
  afterAll(() => agents?.[Symbol.asyncDispose]());

  it("adds up the time, tokens and cost of its turns, also of those that fail", async () => {
    agents.upstream.answerAll(events(messagesEvents("one two")));
    const { data } = await agents.ask("talker", "hello");
    const found = async () => (await agents.service.call("owner", "GET", "/api/runs/search?agent_id=talker")).body.runs[0];
    const first = await found();
    expect(first).toMatchObject({ run_id: data.runId, usage: { inputTokens: 7, outputTokens: 11, cost: 29, currency: "EUR" } });
    expect(first.duration_ms).toBe(Date.parse(first.updatedAt) - Date.parse(first.turn_started_at));

    const { clientRequestId } = await agents.client.followUp(data.sessionId, "more");
    await agents.client.ended(clientRequestId);
    const second = await found();
    expect(second.usage).toEqual({ inputTokens: 14, outputTokens: 22, cost: 58, currency: "EUR" });
    const last = Date.parse(second.updatedAt) - Date.parse(second.turn_started_at);
    expect(second.duration_ms).toBe(first.duration_ms + last);

    agents.upstream.answerAll(refusal);
    const failing = await agents.client.followUp(data.sessionId, "fail");
    await agents.client.ended(failing.clientRequestId);
    expect(await found()).toMatchObject({ status: "failed", usage: { inputTokens: 14, outputTokens: 22, cost: 58 } });
  });
});

describe("a run of a workflow", () => {
  let upstream: FakeUpstream;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
  });
  afterAll(() => upstream?.[Symbol.asyncDispose]());
  beforeEach(() => {
    upstream.reset();
    upstream.answerAll(answer);
  });

  const ask = { type: "model", with: { provider: "messages", model: "echo-large", prompt: "hello" } };
  const start = (definition: object, more: WorkflowServiceOptions = {}) =>
    startWorkflowService({
      definitions: { "w.json": definition },
      adapters: [...upstreamProviders(upstream.baseUrl), modelNode(), recordUsage({ prices })],
      ...more,
    });
  const found = async (service: WorkflowService) => (await service.call("GET", "/api/workflow/runs/search")).body.runs[0];

  it("has the tokens and the cost of its models when it has ended, also of those in a map", async () => {
    const map = { type: "map", with: { items: "${{ [1, 2] }}", nodes: { m: ask }, result: "${{ nodes.m.output.text }}" } };
    await using service = await start({ nodes: { map } });
    const runId = await service.trigger("w");
    await service.ended("w", runId);
    const usage = { inputTokens: 14, outputTokens: 22, cost: 58, currency: "EUR" };
    expect((await found(service)).usage).toEqual(usage);
    expect((await service.call("GET", `/api/workflow/w/runs/${runId}`)).body.usage).toEqual(usage);
  });

  it("counts what failed attempts used", async () => {
    const picky = {
      ...{ ...ask, with: { ...ask.with, output: { type: "object" } } },
      retry: { attempts: 2, delay: "1ms" },
    };
    await using service = await start({ nodes: { picky } });
    await service.ended("w", await service.trigger("w"));
    // Each attempt asks twice.
    expect(upstream.requests.length).toBe(4);
    expect(await found(service)).toMatchObject({ status: "failed", usage: { inputTokens: 28, outputTokens: 44, cost: 116 } });
  });

  it("counts each call once, however often its run is parked and continued", async () => {
    const ok = { type: "human_gate", needs: ["m"], with: { title: "Go on?" } };
    await using service = await start({ nodes: { m: ask, ok } }, { engine: { parkAfterMs: 0 } });
    const runId = await service.trigger("w");
    await service.until("w", runId, ({ status }) => status === "waiting_human");
    expect(await found(service)).not.toHaveProperty("usage");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    await service.call("POST", `/api/workflow/w/runs/${runId}/gate`, { decision: "approve" }, { headers });
    await service.ended("w", runId);
    expect((await found(service)).usage).toEqual({ inputTokens: 7, outputTokens: 11, cost: 29, currency: "EUR" });
  });

  it("has what its agents used; a run without models has no usage", async () => {
    const engine = createScriptedEngine();
    engine.otherwise(async (_turn, context) => {
      const call = { provider: "p", providerType: "t", model: "m", durationMs: 1 };
      context.modelCalled?.({ ...call, inputTokens: 3, outputTokens: 4, cost: 0.5, currency: "EUR" });
      context.modelCalled?.({ ...call, inputTokens: 1 });
    });
    const a = { type: "agent", if: "${{ parameters.asks }}", with: { agent: "helper", prompt: "Look" } };
    await using service = await startWorkflowService({ definitions: { "w.json": { nodes: { a } } }, agents: { engine } });
    await service.ended("w", await service.trigger("w", { asks: true }));
    expect((await found(service)).usage).toEqual({ inputTokens: 4, outputTokens: 4, cost: 0.5, currency: "EUR" });
    await service.ended("w", await service.trigger("w", { asks: false }));
    expect(await found(service)).not.toHaveProperty("usage");
  });
});
