import { describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const one = {
  nodes: { a: { type: "transform", with: { value: "${{ parameters }}" } } },
  outputs: { a: "${{ nodes.a.output }}" },
};
const definitions = { "one.json": one, "two.json": one };
const bindings = [
  { id: "b1", workflowId: "one", boardId: "B", taskId: "T" },
  { id: "b2", workflowId: "one", boardId: "B", taskId: "U", readers: ["somebody-else"] },
  { id: "b3", workflowId: "two", boardId: "B" },
];

describe("the history of a workflow (4.2)", () => {
  it("lists its runs, the newest first, and no other's", async () => {
    await using service = await startWorkflowService({ definitions });
    const runs = [await service.trigger("one"), await service.trigger("one"), await service.trigger("one")];
    await service.trigger("two");
    for (const runId of runs) await service.ended("one", runId);
    const { status, body } = await service.call("GET", "/api/workflow/one/runs");
    expect([status, body.runs.length]).toEqual([200, 3]);
    const starts = body.runs.map(({ startedAt }: { startedAt: string }) => startedAt);
    expect(starts).toEqual([...starts].sort().reverse());
    expect(body.runs[0]).toEqual({
      runId: expect.any(String),
      status: "completed",
      startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      nodeCount: 1,
      completedNodeCount: 1,
      taskBoardBound: false,
      completedAt: expect.any(String),
      totalDurationMs: expect.any(Number),
    });
  });

  it("has a run as soon as it is accepted, while it is active, and when it has ended", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: { a: { type: "transform", with: { value: 1 } }, b: { type: "scripted", needs: ["a"], with: { gate: "b" } } },
        },
      },
    });
    const runId = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    const active = (await service.call("GET", "/api/workflow/w/runs")).body.runs[0];
    expect(active).toMatchObject({ runId, status: "running", nodeCount: 2, completedNodeCount: 1 });
    expect(active).not.toHaveProperty("completedAt");
    const detail = await service.detail("w", runId);
    expect(detail).toMatchObject({ status: "running", nodeResults: { a: { status: "completed" }, b: { status: "running" } } });
    service.nodes.gate("b").open();
    await service.ended("w", runId);
  });

  it("keeps runs whose definition is gone, and every run keeps the definition that it started with", async () => {
    const hold = (say: string) => ({
      nodes: { a: { type: "scripted", with: { gate: "a" } }, b: { type: "transform", needs: ["a"], with: { value: say } } },
      outputs: { b: "${{ nodes.b.output }}" },
    });
    await using service = await startWorkflowService({ definitions: { "w.json": hold("old") } });
    const runId = await service.trigger("w");
    service.deploy("w.json", { name: "New", ...hold("new") });
    await expect
      .poll(async () => (await service.call("GET", "/api/workflows")).body.workflows[0].name, { timeout: 20_000 })
      .toBe("New");
    service.nodes.gate("a").open();
    expect((await service.ended("w", runId)).finalOutputs).toEqual({ b: "old" });
    service.deploy("w.json", "nodes: [");
    await expect
      .poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.length, { timeout: 20_000 })
      .toBe(0);
    expect((await service.call("GET", "/api/workflow/w/runs")).body.runs).toMatchObject([{ runId }]);
    expect((await service.detail("w", runId)).status).toBe("completed");
  });

  it("of a workflow that never was, and a run that is none or another workflow's, is 404", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("one");
    for (const path of [
      "/api/workflow/none/runs",
      "/api/workflow/none/runs/x",
      "/api/workflow/one/runs/wrun_none",
      `/api/workflow/two/runs/${runId}`,
    ])
      expect((await service.call("GET", path)).status).toBe(404);
  });
});

describe("task scope (4.2)", () => {
  const start = async (bindingId?: string, workflowId = "one") => {
    const service = await startWorkflowService({ definitions, runtime: { bindings } });
    const executionGrantId = await service.grant({ workflowId, bindingId, userId: "ada" });
    const { body } = await service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId });
    const free = await service.trigger(workflowId);
    return { service, runId: body.runId as string, free };
  };

  it("finds the runs of a binding, and shows whose they are", async () => {
    const { service, runId, free } = await start("b1");
    const all = (await service.call("GET", "/api/workflow/one/runs")).body.runs;
    expect(all.map((run: { runId: string }) => run.runId).sort()).toEqual([runId, free].sort());
    const scoped = (await service.call("GET", "/api/workflow/one/runs?boardId=B&workflowBindingId=b1&taskId=T")).body.runs;
    expect(scoped).toMatchObject([
      { runId, taskBoardBound: true, workflowBindingId: "b1", boardId: "B", taskId: "T", userId: "ada" },
    ]);
    const scope = "?boardId=B&workflowBindingId=b1";
    expect((await service.call("GET", `/api/workflow/one/runs/${runId}${scope}`)).body).toMatchObject({
      runId,
      taskBoardBound: true,
    });
    expect((await service.call("GET", `/api/workflow/one/runs/${free}${scope}`)).status).toBe(404);
    await service.close();
  });

  it.each([
    ["without a binding", "boardId=B", 403],
    ["without a board", "workflowBindingId=b1", 403],
    ["with a task alone", "taskId=T", 403],
    ["with another board", "boardId=C&workflowBindingId=b1", 403],
    ["with another task", "boardId=B&workflowBindingId=b1&taskId=U", 403],
    ["with an empty task", "boardId=B&workflowBindingId=b1&taskId=", 403],
    ["with another workflow's binding", "boardId=B&workflowBindingId=b3", 403],
    ["with a binding that is none", "boardId=B&workflowBindingId=none", 403],
    ["with a binding that the caller may not read", "boardId=B&workflowBindingId=b2", 403],
    ["given twice", "boardId=B&boardId=B&workflowBindingId=b1", 400],
  ])("%s is refused", async (_how, query, status) => {
    const { service, runId } = await start("b1");
    expect((await service.call("GET", `/api/workflow/one/runs?${query}`)).status).toBe(status);
    expect((await service.call("GET", `/api/workflow/one/runs/${runId}?${query}`)).status).toBe(status);
    await service.close();
  });

  it("runs that the caller may not read are left out of the list, 404 in detail and events, and in no summary", async () => {
    const { service, runId, free } = await start("b2");
    const listed = (await service.call("GET", "/api/workflow/one/runs")).body.runs;
    expect(listed.map((run: { runId: string }) => run.runId)).toEqual([free]);
    expect((await service.call("GET", `/api/workflow/one/runs/${runId}`)).status).toBe(404);
    expect((await service.call("GET", `/api/workflow/events?runId=${runId}`)).status).toBe(404);
    await service.close();
  });
});
