import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const first = { nodes: { a: { type: "transform", with: { value: 1 } }, b: { type: "transform", with: { value: 1 } } } };
const second = {
  nodes: { a: { type: "transform", with: { value: "hidden-credential" } }, c: { type: "transform", with: { value: 1 } } },
};

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
