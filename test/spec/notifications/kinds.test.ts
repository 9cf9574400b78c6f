import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { functionTools } from "@portico/adapters/tools/functions";
import { recordUsage } from "@portico/adapters/usage/records";
import { ports } from "@portico/core";
import { agentSchedules } from "@portico/operator/agent-schedules";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { createCountedLooks, type NotificationReceiver, startNotificationReceiver } from "../../harness/notification-receiver.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const MINUTE_MS = 60_000;
let receiver: NotificationReceiver;
let clock: ManualClock;
let looks: ReturnType<typeof createCountedLooks>;
let service: AgentService | WorkflowService | undefined;

beforeEach(async () => {
  receiver = await startNotificationReceiver();
  clock = createManualClock();
  looks = createCountedLooks("schedule.failing");
});
afterEach(async () => {
  await service?.close();
  await receiver[Symbol.asyncDispose]();
});

type Sent = Parameters<NotificationReceiver["adapter"]>[0];
const startAgents = async (options: AgentServiceOptions = {}, sent: Sent = {}) => {
  const agents = await startAgentService({
    clock,
    ...options,
    adapters: [recordSchedules({}), receiver.adapter(sent), ...(options.adapters ?? [])],
    plugins: [agentSchedules({}), looks.plugin],
  });
  service = agents;
  return agents;
};
const startWorkflows = async (definitions: Record<string, object>, options: WorkflowServiceOptions = {}) => {
  const workflows = await startWorkflowService({
    ...{ clock, definitions, ...options },
    adapters: [recordSchedules({}), receiver.adapter()],
    plugins: [looks.plugin],
  });
  service = workflows;
  // The engine begins.
  await clock.advance(1000);

  return workflows;
};
/** Passes time in small steps until this many notifications of the kind have arrived. */
const arrived = async (type: string, count = 1) => {
  await expect
    .poll(async () => {
      if (receiver.of(type).length < count) await clock.advance(10_000);
      return receiver.of(type).length;
    })
    .toBe(count);
  return receiver.of(type).at(-1)!.body;
};
const startTurn = (agents: AgentService, prompt: string) =>
  agents.app.port(ports.backgroundTurns).start({
    ...{ agentId: "helper", userId: "owner", prompt },
    origin: { origin: "webhook", displayName: "news" },
  });
const failing = async () => {
  throw new Error("The secret prompt");
};

describe("schedule.failing", () => {
  const agents = new Map([
    ["helper", { name: "Helper", engine: "scripted", schedules: [{ name: "news", everyMs: MINUTE_MS, prompt: "News" }] }],
  ]);
  const failures = async (agents: AgentService) =>
    (await agents.call("owner", "GET", "/api/schedules")).body.schedules[0].failures;
  /** Passes time until the schedule has this many failures. */
  const untilFailed = (agents: AgentService, count: number) =>
    expect
      .poll(async () => {
        const now = await failures(agents);
        if (now !== count) await clock.advance(1000);
        return now;
      })
      .toBe(count);

  it("tells once of an agent's schedule that failed so often in a row, and again after a success", async () => {
    const helper = await startAgents({ agents }, { on: ["schedule.failing"], scheduleFailures: 2 });
    helper.engine.on("News", failing);
    await untilFailed(helper, 1);
    await looks.pass(clock);
    const first = await arrived("schedule.failing");
    expect(first.data).toEqual({
      ...{ service: "agent", agentId: "helper", schedule: "news" },
      ...{ failures: expect.any(Number), runId: expect.stringMatching(/^run_/) },
    });
    expect(first.data.failures).toBeGreaterThanOrEqual(2);
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
    helper.engine.on("News", async () => {});
    await untilFailed(helper, 0);
    await looks.pass(clock);
    helper.engine.on("News", failing);
    await arrived("schedule.failing", 2);
  });

  it("tells of a workflow's schedule", async () => {
    await startWorkflows({
      "report.json": {
        ...{ name: "Daily report", schedules: [{ name: "daily", every: "1m" }] },
        nodes: { n: { type: "scripted", with: { fails: 9 } } },
      },
    });
    const { data } = await arrived("schedule.failing");
    expect(data).toEqual({
      ...{ service: "workflow", workflowId: "report", workflowName: "Daily report", schedule: "daily" },
      ...{ failures: expect.any(Number), runId: expect.stringMatching(/^wrun_/) },
    });
    expect(data.failures).toBeGreaterThanOrEqual(3);
  });
});

describe("run.failed", () => {
  it("tells once of a background turn that failed, and quotes neither its prompt nor its error", async () => {
    const helper = await startAgents();
    helper.engine.on("The secret prompt", failing);
    const { runId } = await startTurn(helper, "The secret prompt");
    const { data } = await arrived("run.failed");
    expect(data).toEqual({ service: "agent", agentId: "helper", runId, origin: "webhook", code: expect.any(String) });
    expect(receiver.received[0]!.text).not.toContain("secret");
    expect(receiver.received[0]!.isSigned).toBe(true);
    await startTurn(helper, "Fine");
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
  });

  it("tells once of a run of a workflow that failed, with the node and the code", async () => {
    const workflows = await startWorkflows({
      "broken.json": { name: "Broken", nodes: { n: { type: "scripted", with: { fails: 9, retryable: false } } } },
    });
    const runId = await workflows.trigger("broken");
    const { data } = await arrived("run.failed");
    expect(data).toEqual({
      ...{ service: "workflow", workflowId: "broken", workflowName: "Broken", runId },
      ...{ status: "failed", nodeId: "n", code: expect.any(String) },
    });
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
  });

  it("does not tell of a run that a node of another run started, which decides what follows", async () => {
    const workflows = await startWorkflows({
      "inner.json": { nodes: { n: { type: "scripted", with: { fails: 9, retryable: false } } } },
      "outer.json": { nodes: { n: { type: "workflow", with: { workflow: "inner" } } } },
    });
    const runId = await workflows.trigger("outer");
    await arrived("run.failed");
    await looks.pass(clock);
    expect(receiver.of("run.failed").map(({ body }) => body.data.runId)).toEqual([runId]);
  });
});

describe("decision.waiting", () => {
  it("tells once of an approval that waits for some minutes", async () => {
    const erase = { ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }), run: async () => "done" };
    const helper = await startAgents({
      agents: new Map([
        ["helper", { name: "Helper", tools: ["erase"], toolPolicy: { background: { tools: { erase: "ask" } } } }],
      ]),
      adapters: [functionTools({ tools: [erase] })],
    });
    const { runId } = await startTurn(helper, "use erase, secretly");
    await expect.poll(async () => (await helper.call("owner", "GET", "/api/approvals")).body.approvals.length).toBe(1);
    const [{ callId, askedAt, expiresAt }] = (await helper.call("owner", "GET", "/api/approvals")).body.approvals;
    await looks.pass(clock);
    expect(receiver.received).toEqual([]);
    const { data, timestamp } = await arrived("decision.waiting");
    expect(data).toEqual({
      ...{ service: "agent", decision: "approval", agentId: "helper", runId, callId, userId: "owner" },
      ...{ toolId: "erase", askedAt, expiresAt },
    });
    expect(Date.parse(timestamp) - Date.parse(askedAt)).toBeGreaterThanOrEqual(10 * MINUTE_MS);
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
    expect(receiver.received[0]!.text).not.toContain("secret");
  });

  it("tells once of a gate that waits for some minutes", async () => {
    const workflows = await startWorkflows({
      "ask.json": { name: "Ask", nodes: { ok: { type: "human_gate", with: { title: "A secret title" } } } },
    });
    const runId = await workflows.trigger("ask");
    const { humanGate } = await workflows.until("ask", runId, ({ status }) => status === "waiting_human");
    await looks.pass(clock);
    expect(receiver.received).toEqual([]);
    const { data } = await arrived("decision.waiting");
    expect(data).toEqual({
      ...{ service: "workflow", decision: "gate", workflowId: "ask", workflowName: "Ask", runId, nodeId: "ok" },
      askedAt: humanGate.requestedAt,
    });
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
  });
});

describe("limit.near", () => {
  it("tells once a day of a limit of which a part is used", async () => {
    const helper = await startAgents({
      adapters: [recordUsage({})],
      runtime: { limits: { instance: { tokensPerDay: 100 }, user: { tokensPerDay: 1000 } } },
    });
    const use = (inputTokens: number) =>
      helper.app
        .port(ports.usage)
        .note({ source: "agent", provider: "main", model: "m", userId: "mia", agentId: "helper" })
        .end({ inputTokens, outputTokens: 0 });
    use(79);
    await looks.pass(clock);
    expect(receiver.received).toEqual([]);
    use(1);
    const { data } = await arrived("limit.near");
    expect(data).toEqual({ scope: "instance", limit: "tokensPerDay", used: 80, most: 100, endsAt: "2030-01-02T00:00:00.000Z" });
    use(15);
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
    await clock.jump(24 * 60 * MINUTE_MS);
    use(90);
    const next = await arrived("limit.near", 2);
    expect(next.data).toMatchObject({ used: 90, endsAt: "2030-01-03T00:00:00.000Z" });
  });
});

it("Without an adapter of the port, nothing is written for notifications", async () => {
  const helper = await startAgentService({ clock });
  service = helper;
  helper.engine.on("Fail", failing);
  const { runId } = await startTurn(helper, "Fail");
  await expect.poll(async () => (await helper.call("owner", "GET", `/api/runs/${runId}`)).body?.status).toBe("failed");
  const records = helper.app.port(ports.records);
  for (const name of ["notifications", "notification-states"])
    expect((await records.collection({ name }).query({})).items).toEqual([]);
});
