import { createManualClock } from "@portico/adapters/clock/manual";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

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
    const list = async () => (await service.call("GET", "/api/workflow/w/runs")).body.runs[0];
    // In a cluster, other processes learn it a moment later.
    await expect.poll(list).toMatchObject({ runId, status: "running", nodeCount: 2, completedNodeCount: 1 });
    expect(await list()).not.toHaveProperty("completedAt");
    await expect
      .poll(() => service.detail("w", runId))
      .toMatchObject({ status: "running", nodeResults: { a: { status: "completed" }, b: { status: "running" } } });
    service.nodes.gate("b").open();
    await service.ended("w", runId);
  });

  it("counts the nodes that have completed while a run waits, parked or not, after a restart, and when it was cancelled then", async () => {
    const value = (needs: readonly string[] = []) => ({ type: "transform", needs, with: { value: 1 } });
    const nodes = { a: value(), b: value(["a"]) };
    const gated = { nodes: { ...nodes, ok: { type: "human_gate", needs: ["b"], with: { title: "Go on?" } }, c: value(["ok"]) } };
    const waiting = { nodes: { ...nodes, w: { type: "wait", needs: ["b"], with: { for: "1h" } } } };
    const definitions = { "gated.json": gated, "waiting.json": waiting };
    const clock = createManualClock();
    const { path: dataDir, remove } = temporaryFolder();
    const first = await startWorkflowService({ definitions, dataDir, clock, engine: { parkAfterMs: 0 } });
    const entry = async (service: WorkflowService, id: string) =>
      (await service.call("GET", `/api/workflow/${id}/runs`)).body.runs[0];
    const runs = { gated: await first.trigger("gated"), waiting: await first.trigger("waiting") };
    const { live } = first.app.port(workflowRuntime);
    const isParked = async () => {
      await clock.advance(1);
      return Object.values(runs).every((runId) => live.find(runId) === undefined);
    };
    await first.until("gated", runs.gated, ({ status }) => status === "waiting_human");
    await first.until("waiting", runs.waiting, ({ nodeResults }) => nodeResults.w?.status === "running");
    await expect.poll(isParked).toBe(true);
    expect(await entry(first, "gated")).toMatchObject({ status: "waiting_human", nodeCount: 4, completedNodeCount: 2 });
    expect(await entry(first, "waiting")).toMatchObject({ status: "running", nodeCount: 3, completedNodeCount: 2 });
    await first.close();

    // Not parked, and killed: what the next process finds is what the gate's record said.
    const second = await startWorkflowService({
      dataDir: first.dataDir,
      clock,
      engine: { parkAfterMs: Number.POSITIVE_INFINITY },
    });
    expect((await entry(second, "gated")).completedNodeCount).toBe(2);
    const killed = await second.trigger("gated");
    await second.until("gated", killed, ({ status }) => status === "waiting_human");
    const third = await startWorkflowService({ dataDir, clock, engine: { parkAfterMs: 0 } });
    expect(await entry(third, "gated")).toMatchObject({ runId: killed, completedNodeCount: 2 });
    expect((await entry(third, "waiting")).completedNodeCount).toBe(2);

    const headers = { "x-execution-grant": await third.grant({ workflowId: "gated" }) };
    await third.call("POST", `/api/workflow/gated/runs/${runs.gated}/cancel`, undefined, { headers });
    await third.ended("gated", runs.gated);
    const { runs: listed } = (await third.call("GET", "/api/workflow/gated/runs")).body;
    expect(listed[1]).toMatchObject({ runId: runs.gated, status: "cancelled", completedNodeCount: 2 });
    await third.close();
    await second.close().catch(() => {});
    remove();
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
      .poll(async () => (await service.call("GET", "/api/workflows")).body.workflows[0].name, { timeout: 30_000 })
      .toBe("New");
    service.nodes.gate("a").open();
    expect((await service.ended("w", runId)).finalOutputs).toEqual({ b: "old" });
    service.deploy("w.json", "nodes: [");
    await expect
      .poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.length, { timeout: 30_000 })
      .toBe(0);
    expect((await service.call("GET", "/api/workflow/w/runs")).body.runs).toMatchObject([{ runId }]);
    expect((await service.detail("w", runId)).status).toBe("completed");
  });

  it("404 for an unknown workflow, an unknown run, and another workflow's run", async () => {
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
  const start = async (bindingId: string, more: WorkflowServiceOptions = {}) => {
    const workflowId = "one";
    const service = await startWorkflowService({ definitions, runtime: { bindings }, ...more });
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

  it("runs of a binding that was removed from the configuration are not shown to any caller", async () => {
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    const { service: before, runId, free } = await start("b1", { dataDir: folder.path });
    await before.close();
    await using service = await startWorkflowService({ dataDir: folder.path, runtime: { bindings: bindings.slice(1) } });
    const listed = (await service.call("GET", "/api/workflow/one/runs")).body.runs;
    expect(listed.map((run: { runId: string }) => run.runId)).toEqual([free]);
    expect((await service.call("GET", `/api/workflow/one/runs/${runId}`)).status).toBe(404);
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
