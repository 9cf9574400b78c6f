import { createManualClock } from "@portico/adapters/clock/manual";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const parameters = { type: "object", properties: { customer: { type: "string" }, gate: { type: "string" } } };
const held = { type: "repeatable", with: { gate: "${{ parameters.gate }}", say: "done" } };

/** A workflow whose runs wait at the gate that their parameters name. */
const limited = (concurrency: object, more: object = {}) => ({
  ...{ parameters, concurrency, nodes: { held }, outputs: { said: "${{ nodes.held.output }}" } },
  ...more,
});

const start = (concurrency: object, more?: object): Promise<WorkflowService> =>
  startWorkflowService({ definitions: { "limited.json": limited(concurrency, more) } });

const trigger = (service: WorkflowService, body: object, headers: Record<string, string> = {}) =>
  service.call("POST", "/api/workflow/webhook?id=limited", body, { headers });
const isBegun = (service: WorkflowService, runId: string) =>
  service.until("limited", runId, ({ nodeResults }) => nodeResults.held !== undefined);
const cancel = async (service: WorkflowService, runId: string) =>
  service.call("POST", `/api/workflow/limited/runs/${runId}/cancel`, undefined, {
    headers: { "x-execution-grant": await service.grant({ workflowId: "limited" }) },
  });

describe("concurrency of a workflow", () => {
  it("lets at most `limit` runs go on, and begins the others in the order of their starts", async () => {
    await using service = await start({ limit: 2 });
    const runIds: string[] = [];
    for (const gate of ["a", "b", "c", "d"]) runIds.push(await service.trigger("limited", { gate }));
    const [a, b, c, d] = runIds as [string, string, string, string];
    await Promise.all([isBegun(service, a), isBegun(service, b)]);
    for (const waiting of [c, d]) {
      expect(await service.detail("limited", waiting)).toMatchObject({ status: "running", queued: true, nodeResults: {} });
    }
    service.nodes.gate("b").open();
    expect(await service.ended("limited", b)).toMatchObject({ status: "completed" });
    expect(await isBegun(service, c)).not.toHaveProperty("queued");
    expect(await service.detail("limited", d)).toMatchObject({ queued: true });
    for (const gate of ["a", "c", "d"]) service.nodes.gate(gate).open();
    for (const runId of runIds) {
      expect(await service.ended("limited", runId)).toMatchObject({ status: "completed", finalOutputs: { said: "done" } });
    }
    const { body } = await service.call("GET", "/api/workflow/limited/runs");
    expect(body.runs.filter((run: object) => "queued" in run)).toEqual([]);
  });

  it("applies to runs with the same key", async () => {
    await using service = await start({ limit: 1, key: "${{ parameters.customer }}", overflow: "refuse" });
    const first = await service.trigger("limited", { customer: "one", gate: "a" });
    await isBegun(service, await service.trigger("limited", { customer: "two", gate: "a" }));
    expect(await trigger(service, { customer: "one", gate: "a" })).toMatchObject({
      status: 409,
      body: { code: "workflow_busy" },
    });
    service.nodes.gate("a").open();
    await service.ended("limited", first);
    expect(await trigger(service, { customer: "one", gate: "a" })).toMatchObject({ status: 200 });
  });

  it("refuses parameters for which the key cannot be evaluated", async () => {
    await using service = await start({ limit: 1, key: "${{ parameters.customer }}" });
    const { status, body } = await trigger(service, { gate: "a" });
    expect([status, body.code, body.details.parameters[0].path]).toEqual([400, "invalid_parameters", "/"]);
  });

  it("gives one slot to one of many starts at the same time", async () => {
    await using service = await start({ limit: 1, overflow: "refuse" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => trigger(service, { gate: "a" })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
    service.nodes.gate("a").open();
  });

  it("executes all of many starts at the same time, never more than the limit at once", async () => {
    await using service = await start({ limit: 3 });
    const answers = await Promise.all(Array.from({ length: 12 }, () => trigger(service, { gate: "a" })));
    await expect.poll(() => service.nodes.played.length).toBe(3);
    service.nodes.gate("a").open();
    for (const { body } of answers) expect(await service.ended("limited", body.runId)).toMatchObject({ status: "completed" });
    expect(service.nodes.played).toHaveLength(12);
  });

  it("replaces the oldest run, whose end says why", async () => {
    await using service = await start({ limit: 1, overflow: "replace" });
    const first = await service.trigger("limited", { gate: "a" });
    await isBegun(service, first);
    const second = await service.trigger("limited", { gate: "a" });
    const third = await service.trigger("limited", { gate: "a" });
    expect(await service.ended("limited", first)).toMatchObject({
      status: "cancelled",
      error: { code: "cancelled", message: `Run ${second} replaced it, because of the workflow's concurrency` },
    });
    expect(await service.ended("limited", second)).toMatchObject({
      status: "cancelled",
      error: { message: expect.stringContaining(third) },
    });
    await isBegun(service, third);
    service.nodes.gate("a").open();
    expect(await service.ended("limited", third)).toMatchObject({ status: "completed" });
  });

  it("frees the slot of a run that fails or is cancelled, also while it waits for its turn", async () => {
    await using service = await start({ limit: 1 });
    const [first, second, third] = [
      await service.trigger("limited", { gate: "a" }),
      await service.trigger("limited", { gate: "a" }),
      await service.trigger("limited", { gate: "a" }),
    ];
    await isBegun(service, first);
    expect(await cancel(service, second)).toMatchObject({ status: 200 });
    expect(await service.ended("limited", second)).toMatchObject({ status: "cancelled" });
    expect(await service.detail("limited", third)).toMatchObject({ queued: true });
    expect(await cancel(service, first)).toMatchObject({ status: 200 });
    await isBegun(service, third);
    service.nodes.gate("a").open();
    expect(await service.ended("limited", third)).toMatchObject({ status: "completed" });
  });

  it("answers a repeated Idempotency-Key with the first run, also if no slot is free", async () => {
    await using service = await start({ limit: 1, overflow: "refuse" });
    const key = { "idempotency-key": "k" };
    const answers = await Promise.all(Array.from({ length: 10 }, () => trigger(service, { gate: "a" }, key)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
    service.nodes.gate("a").open();
  });

  it("counts a run that waits at a gate", async () => {
    const gate = { type: "human_gate", with: { title: "Go on?" } };
    await using service = await start({ limit: 1, overflow: "refuse" }, { nodes: { gate }, outputs: {} });
    const runId = await service.trigger("limited", {});
    await service.until("limited", runId, ({ status }) => status === "waiting_human");
    expect(await trigger(service, {})).toMatchObject({ status: 409, body: { code: "workflow_busy" } });
  });

  it("counts the time limit of a run from its turn", async () => {
    const clock = createManualClock();
    const definition = limited({ limit: 1 }, { settings: { timeout: "10m" } });
    await using service = await startWorkflowService({ definitions: { "limited.json": definition }, clock });
    const first = await service.trigger("limited", { gate: "a" });
    const second = await service.trigger("limited", { gate: "b" });
    await isBegun(service, first);
    await clock.jump(9 * 60_000);
    service.nodes.gate("a").open();
    await isBegun(service, second);
    await clock.jump(9 * 60_000);
    service.nodes.gate("b").open();
    expect(await service.ended("limited", second)).toMatchObject({ status: "completed" });
  });

  it("fails the node that starts a workflow which refuses, and the node may retry", async () => {
    const call = { type: "workflow", with: { workflow: "limited", parameters: { gate: "a" } } };
    await using service = await startWorkflowService({
      definitions: {
        "limited.json": limited({ limit: 1, overflow: "refuse" }),
        "calling.json": { nodes: { call } },
        "retrying.json": { nodes: { call: { ...call, retry: { attempts: 100, delay: "10ms", maxDelay: "10ms" } } } },
      },
    });
    const first = await service.trigger("limited", { gate: "a" });
    const refused = await service.ended("calling", await service.trigger("calling"));
    expect(refused).toMatchObject({ status: "failed", error: { code: "workflow_busy", nodeId: "call" } });
    const retrying = await service.trigger("retrying");
    service.nodes.gate("a").open();
    await service.ended("limited", first);
    expect(await service.ended("retrying", retrying)).toMatchObject({ status: "completed" });
  });

  it("lets a workflow that starts itself wait for its own timeout", async () => {
    const again = { type: "workflow", if: "parameters.again", with: { workflow: "itself", parameters: { again: false } } };
    const definition = {
      parameters: { type: "object", properties: { again: { type: "boolean", default: true } } },
      settings: { timeout: "200ms" },
      concurrency: { limit: 1 },
      nodes: { again },
    };
    await using service = await startWorkflowService({ definitions: { "itself.json": definition } });
    const runId = await service.trigger("itself");
    expect(await service.ended("itself", runId)).toMatchObject({ status: "failed", error: { code: "timeout" } });
  });

  it("records a planned time that is refused, and keeps the schedule", async () => {
    const clock = createManualClock();
    const schedules = [{ name: "each", every: "1m", overlap: "allow", parameters: { gate: "a" } }];
    const definition = limited({ limit: 1, overflow: "refuse" }, { schedules });
    await using service = await startWorkflowService({
      ...{ clock, adapters: [recordSchedules({})], definitions: { "limited.json": definition } },
    });
    const listed = async () => (await service.call("GET", "/api/workflow/schedules")).body.schedules[0];
    const passUntil = async (isSo: () => Promise<boolean>) => {
      while (!(await isSo())) {
        await clock.advance(1000);
        await sleep(2);
      }
    };
    // The start is noted after the refusal.
    await passUntil(async () => {
      const { lastRefused, last } = await listed();
      return lastRefused !== undefined && lastRefused.plannedAt === last;
    });
    expect((await listed()).lastRefused.code).toBe("workflow_busy");
    const { body } = await service.call("GET", "/api/workflow/limited/runs");
    expect(body.runs).toHaveLength(1);
    service.nodes.gate("a").open();
    await service.ended("limited", body.runs[0].runId);
    await passUntil(async () => (await service.call("GET", "/api/workflow/limited/runs")).body.runs.length === 2);
  });

  it("applies a raised limit of the deployed definition to runs that wait", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions: { "limited.json": limited({ limit: 1 }) }, clock });
    await isBegun(service, await service.trigger("limited", { gate: "a" }));
    const second = await service.trigger("limited", { gate: "b" });
    service.deploy("limited.json", limited({ limit: 2 }));
    const isNew = async () => (await service.call("GET", "/api/workflow/limited/definition")).body.concurrency.limit === 2;
    const isQueued = async () => "queued" in (await service.detail("limited", second));
    while (!(await isNew()) || (await isQueued())) {
      await clock.advance(5000);
      await sleep(2);
    }
    await isBegun(service, second);
  });

  it("is shown with the definition", async () => {
    await using service = await start({ limit: 3, key: "c-${{ parameters.customer }}", overflow: "replace" });
    const { body } = await service.call("GET", "/api/workflow/limited/definition");
    expect(body.concurrency).toEqual({ limit: 3, key: "c-${{ parameters.customer }}", overflow: "replace" });
  });
});
