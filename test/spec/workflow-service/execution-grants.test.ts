import { createManualClock } from "@portico/adapters/clock/manual";
import { executionGrants } from "@portico/plugins/workflow-service/execution-grants";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Holder } from "../../harness/agent-app.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const one = { nodes: { a: { type: "transform", with: { value: 1 } } } };
const bindings = [
  { id: "b1", workflowId: "one", boardId: "B", taskId: "T" },
  { id: "b2", workflowId: "two", boardId: "B", taskId: "T" },
];
const DAY = 86_400_000;

describe("issuing an execution grant over the agent service (open points 8)", () => {
  const clock = createManualClock({ startAt: "2030-01-01T00:00:00.000Z" });
  let service: WorkflowService;
  beforeAll(async () => {
    service = await startWorkflowService({
      definitions: { "one.json": one, "two.json": one },
      runtime: { bindings },
      clock,
      agents: { plugins: [executionGrants({})], clock },
    });
  });
  afterAll(() => service.close());
  const issue = (body: unknown, holder: Holder | undefined = "owner") =>
    service.agents!.call(holder, "POST", "/api/execution-grants", body);
  const run = (executionGrantId: string) =>
    service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId: "one" });

  it("answers 201 with a grant, which starts one run for the owner", async () => {
    const issued = await issue({ workflowId: "one" });
    expect([issued.status, issued.body]).toEqual([
      201,
      { executionGrantId: expect.stringMatching(/^grant_/), workflowId: "one", expiresAt: expect.any(String) },
    ]);
    const { body } = await run(issued.body.executionGrantId);
    expect(await service.detail("one", body.runId)).toMatchObject({ userId: "owner" });
  });

  it("issues for another user, a binding and a time", async () => {
    const issued = await issue({ workflowId: "one", userId: "ada", bindingId: "b1", ttlMs: DAY });
    expect(Date.parse(issued.body.expiresAt) - clock.now()).toBe(DAY);
    const { body } = await run(issued.body.executionGrantId);
    expect(await service.detail("one", body.runId)).toMatchObject({ userId: "ada", workflowBindingId: "b1" });
  });

  it.each([
    ["nobody", undefined, 401],
    ["a member", "member", 403],
    ["a service", "service", 403],
  ] as const)("refuses %s", async (_who, holder, status) => {
    expect((await service.agents!.call(holder, "POST", "/api/execution-grants", { workflowId: "one" })).status).toBe(status);
  });

  it.each([
    ["an unknown workflow", { workflowId: "three" }, "workflow_not_found"],
    ["an unknown binding", { workflowId: "one", bindingId: "b3" }, "binding_not_found"],
    ["another workflow's binding", { workflowId: "one", bindingId: "b2" }, "binding_not_found"],
  ])("answers 404 for %s", async (_what, body, code) => {
    const answer = await issue(body);
    expect([answer.status, answer.body.code]).toEqual([404, code]);
  });

  it.each([
    ["no workflow", {}],
    ["an unknown key", { workflowId: "one", more: 1 }],
    ["less than a second", { workflowId: "one", ttlMs: 999 }],
    ["more than 366 days", { workflowId: "one", ttlMs: 366 * DAY + 1 }],
    ["part of a millisecond", { workflowId: "one", ttlMs: 1_000.5 }],
  ])("answers 400 for %s", async (_what, body) => {
    const answer = await issue(body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
  });

  it.each([1_000, 366 * DAY])("takes %i ms", async (ttlMs) => {
    expect((await issue({ workflowId: "one", ttlMs })).status).toBe(201);
  });
});
