import { createManualClock } from "@portico/adapters/clock/manual";
import { idempotencyKeyOf } from "@portico/core/kit";
import { ports } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { describe, expect, it } from "vitest";
import { routesWithHeader } from "../../harness/routes-with-header.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const quick = { nodes: { a: { type: "transform", with: { value: 7 } } }, outputs: { a: "${{ nodes.a.output }}" } };
const definitions = { "quick.json": quick, "other.json": quick };
const DAY = 24 * 60 * 60_000;

function trigger(service: WorkflowService, key: string, body: unknown = {}, id = "quick") {
  return service.call("POST", `/api/workflow/webhook?id=${id}`, body, { headers: { "idempotency-key": key } });
}

async function runCount(service: WorkflowService, id = "quick"): Promise<number> {
  return (await service.call("GET", `/api/workflow/${id}/runs`)).body.runs.length;
}

async function start(service: WorkflowService, user: string | undefined, parameters: object, bodyKey: string) {
  const executionGrantId = await service.grant({ workflowId: "quick", ...(user !== undefined && { userId: user }) });
  const body = { executionGrantId, idempotencyKey: bodyKey, workflowId: "quick", parameters };
  return service.call("POST", "/api/workflow/run", body, { headers: { "idempotency-key": "k" } });
}

describe("a trigger with Idempotency-Key (open points 15)", () => {
  it("answers a repetition with the first run, whatever the order of the body's keys, and says so", async () => {
    await using service = await startWorkflowService({ definitions });
    const first = await trigger(service, '"k-1"', { a: 1, b: [2] });
    expect(first).toMatchObject({ status: 200, body: { workflowId: "quick", status: "started" } });
    expect(first.body).not.toHaveProperty("duplicate");
    const again = await trigger(service, "k-1", '{ "b": [2], "a": 1 }');
    expect(again).toMatchObject({ status: 200, body: { ...first.body, duplicate: true } });
    expect(await runCount(service)).toBe(1);
  });

  it("is refused with another body, and starts nothing", async () => {
    await using service = await startWorkflowService({ definitions });
    await trigger(service, "k", { a: 1 });
    const refused = await trigger(service, "k", { a: 2 });
    expect([refused.status, refused.body.code]).toEqual([409, "idempotency_key_reused"]);
    expect(await runCount(service)).toBe(1);
  });

  it("starts one run for many calls at the same time", async () => {
    await using service = await startWorkflowService({ definitions });
    const answers = await Promise.all(Array.from({ length: 20 }, () => trigger(service, "k")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
    expect(answers.filter(({ body }) => body.duplicate === undefined)).toHaveLength(1);
    expect(await runCount(service)).toBe(1);
  });

  it("is scoped to the workflow, and without a key equal bodies start a run each", async () => {
    await using service = await startWorkflowService({ definitions });
    const [one, other] = [await trigger(service, "k"), await trigger(service, "k", {}, "other")];
    expect(other.body.runId).not.toBe(one.body.runId);
    expect(await service.trigger("quick")).not.toBe(await service.trigger("quick"));
  });

  it("waits for the end of the first run with Prefer: wait", async () => {
    await using service = await startWorkflowService({ definitions });
    const { body } = await trigger(service, "k");
    const headers = { "idempotency-key": "k", prefer: "wait=30" };
    const again = await service.call("POST", "/api/workflow/webhook?id=quick", {}, { headers });
    expect(again.body).toMatchObject({ runId: body.runId, status: "completed", finalOutputs: { a: 7 } });
  });

  it("keeps the key for a day, and then begins anew; the sweep removes it", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions, clock });
    const first = await trigger(service, "k");
    await clock.jump(DAY - 1);
    expect((await trigger(service, "k")).body.runId).toBe(first.body.runId);
    await clock.advance(1);
    const second = await trigger(service, "k");
    expect(second.body.runId).not.toBe(first.body.runId);
    const kept = () =>
      service.app
        .port(ports.records)
        .collection({ name: "workflow-idempotency-keys", indexes: { by_end: ["until"] } })
        .query({});
    const sweep = () => service.app.port(workflowRuntime).sweep(new AbortController().signal);
    await sweep();
    expect((await kept()).items).toHaveLength(1);
    await clock.jump(DAY);
    await sweep();
    expect((await kept()).items).toHaveLength(0);
  });

  it("keeps no body and no key in clear text", async () => {
    await using service = await startWorkflowService({ definitions });
    await trigger(service, "order-4711", { password: "hunter2" });
    const collection = { name: "workflow-idempotency-keys", indexes: { by_end: ["until"] } };
    const text = JSON.stringify(await service.app.port(ports.records).collection(collection).query({}));
    expect(text).not.toMatch(/order-4711|hunter2/);
  });

  it("takes 1-256 visible characters, with or without quotes", async () => {
    await using service = await startWorkflowService({ definitions });
    for (const key of ["", '""', "a b", "a,b", "x".repeat(257), '"a', "ä"]) {
      const { status, body } = await trigger(service, key);
      expect([key, status, body.code]).toEqual([key, 400, "idempotency_key_invalid"]);
    }
    const keyOf = (value: string) => idempotencyKeyOf({ header: () => value });
    expect(keyOf("x".repeat(256))).toEqual({ key: "x".repeat(256) });
    expect(keyOf('"a, \\"b\\" \\\\"')).toEqual({ key: 'a, "b" \\' });
  });
});

describe("a start with a grant and Idempotency-Key (open points 15)", () => {
  it("answers the first run to another grant of the same user, and leaves that grant unused", async () => {
    await using service = await startWorkflowService({ definitions });
    const first = await start(service, "ada", { a: 1 }, "one");
    expect(first.status).toBe(200);
    const again = await start(service, "ada", { a: 1 }, "two");
    expect(again).toMatchObject({ status: 200, body: { runId: first.body.runId, duplicate: true } });
    expect((await start(service, "ada", { a: 2 }, "three")).body.code).toBe("idempotency_key_reused");
    expect((await start(service, "bob", { a: 1 }, "four")).body.runId).not.toBe(first.body.runId);
  });

  it("starts one run for many grants at the same time", async () => {
    await using service = await startWorkflowService({ definitions });
    const answers = await Promise.all(Array.from({ length: 10 }, (_, at) => start(service, "ada", {}, `key ${at}`)));
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
    expect(await runCount(service)).toBe(1);
  });
});

it("the OpenAPI document names the header at both calls", () => {
  expect(routesWithHeader("Idempotency-Key")).toEqual(["workflows.start", "workflows.trigger"]);
});
