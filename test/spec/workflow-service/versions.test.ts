import { createManualClock } from "@portico/adapters/clock/manual";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const first = { nodes: { a: { type: "transform", with: { value: 1 } }, b: { type: "transform", with: { value: 1 } } } };
const second = {
  nodes: { a: { type: "transform", with: { value: "hidden-credential" } }, c: { type: "transform", with: { value: 1 } } },
};

const HOUR = 3_600_000;

let service: WorkflowService;
beforeEach(async () => {
  service = await startWorkflowService({ definitions: { "flow.json": first, "other.json": first } });
});
afterEach(() => service.close());

const versions = async (id = "flow") => (await service.call("GET", `/api/workflow/${id}/versions`)).body as any;

async function run(id = "flow"): Promise<any> {
  return service.ended(id, await service.trigger(id));
}

async function deploySecond(): Promise<void> {
  service.deploy("flow.json", second);
  await expect
    .poll(async () => (await service.call("GET", "/api/workflow/flow/definition")).body)
    .toMatchObject({ nodes: [{ id: "a" }, { id: "c" }] });
}

describe("GET /api/workflow/:id/versions", () => {
  it("lists each version with its runs, newest first, and what changed since the version before", async () => {
    const one = await run();
    const two = await run();
    await run("other");
    await deploySecond();
    const three = await run();
    const { versions: all } = await versions();
    expect(all).toEqual([
      {
        version: expect.stringMatching(/^[0-9a-f]{64}$/),
        ...{ isDeployed: true, runCount: 1, firstUsedAt: three.startedAt, lastUsedAt: three.startedAt },
        changes: [
          { path: "$.nodes.a.with.value", change: "changed" },
          { path: "$.nodes.c", change: "added" },
          { path: "$.nodes.b", change: "removed" },
        ],
        changeCount: 3,
      },
      {
        version: expect.stringMatching(/^[0-9a-f]{64}$/),
        ...{ isDeployed: false, runCount: 2, firstUsedAt: one.startedAt, lastUsedAt: two.startedAt },
      },
    ]);
    expect(JSON.stringify(all)).not.toContain("hidden-credential");
  });

  it("counts stored runs once, without those that were removed, and those of unreadable bindings", async () => {
    const clock = createManualClock();
    const bindings = [
      { id: "mine", workflowId: "flow", boardId: "B" },
      { id: "theirs", workflowId: "flow", boardId: "B", readers: ["other"] },
    ];
    await using own = await startWorkflowService({
      ...{ clock, definitions: { "flow.json": first } },
      runtime: { bindings, keepRuns: "2h" },
    });
    const { runs, sweep } = own.app.port(workflowRuntime);
    const counts = async () =>
      (await own.call("GET", "/api/workflow/flow/versions")).body.versions.map(({ runCount }: { runCount: number }) => runCount);
    const ended = async (bindingId?: string) => {
      const executionGrantId = await own.grant({ workflowId: "flow", ...(bindingId !== undefined && { bindingId }) });
      const body = { executionGrantId, idempotencyKey: "1", workflowId: "flow" };
      const { runId } = (await own.call("POST", "/api/workflow/run", body)).body;
      await expect.poll(async () => (await runs.find(runId))?.value.status).toBe("completed");
    };
    const { signal } = new AbortController();
    const count = () => runs.use.count("flow", clock.now(), signal);
    const stored = async () => (await runs.use.of("flow", signal)).reduce((sum, use) => sum + use.count, 0);

    for (const bindingId of [undefined, "mine", "theirs", undefined]) await ended(bindingId);
    expect(await counts()).toEqual([3]);
    await count();
    expect([await counts(), await stored()]).toEqual([[3], 4]);
    await clock.jump(HOUR);
    // Stored now: a second count adds none.
    for (let at = 0; at < 2; at++) await count();
    await ended();
    expect([await counts(), await stored()]).toEqual([[4], 5]);
    await clock.jump(1.5 * HOUR);
    await sweep(signal);
    expect([await counts(), await stored()]).toEqual([[1], 1]);
    await count();
    expect([await counts(), await stored()]).toEqual([[1], 1]);
  });

  it("counts a run once that is removed twice at the same time", async () => {
    await using own = await startWorkflowService({ definitions: { "flow.json": first } });
    const { runs } = own.app.port(workflowRuntime);
    const { signal } = new AbortController();
    const records = [];
    for (let at = 0; at < 3; at++) {
      const runId = await own.trigger("flow");
      await own.ended("flow", runId);
      records.push((await runs.find(runId))!.value);
    }
    await runs.use.count("flow", Date.now() + HOUR, signal);
    const stored = async () => (await runs.use.of("flow", signal)).map(({ count }) => count);
    expect(await stored()).toEqual([3]);
    await Promise.all([runs.remove(records.slice(0, 2)), runs.remove(records.slice(0, 2))]);
    await runs.remove(records.slice(0, 1));
    expect(await stored()).toEqual([1]);
  });

  it("lists a deployed version before its first run", async () => {
    await run();
    await deploySecond();
    const { versions: all } = await versions();
    expect(all).toMatchObject([
      { isDeployed: true, runCount: 0, changeCount: 3 },
      { isDeployed: false, runCount: 1 },
    ]);
  });

  it("answers 404 for an unknown workflow", async () => {
    const { status, body } = await service.call("GET", "/api/workflow/gone/versions");
    expect([status, body]).toMatchObject([404, { code: "workflow_not_found" }]);
  });
});
