import { describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const value = (output: unknown, needs: readonly string[] = [], more: object = {}) => ({
  type: "transform",
  needs,
  with: { value: output },
  ...more,
});
const scripted = (given: object, needs: readonly string[] = [], more: object = {}) => ({
  type: "scripted",
  needs,
  with: given,
  ...more,
});

async function play(definition: object, parameters: object = {}, options: Parameters<typeof startWorkflowService>[0] = {}) {
  const service = await startWorkflowService({ definitions: { "w.json": definition }, ...options });
  const runId = await service.trigger("w", parameters);
  const detail = await service.ended("w", runId);
  await service.close();
  return { detail, nodes: service.nodes, telemetry: service.telemetry };
}

describe("a run (workflow.md)", () => {
  it("records of every node what it was given, gave, and how long it took", async () => {
    const { detail } = await play({
      nodes: { a: { name: "First", ...value({ n: 1 }) }, b: value("${{ nodes.a.output.n + 1 }}", ["a"]) },
      outputs: { b: "${{ nodes.b.output }}" },
    });
    expect(detail).toMatchObject({ workflowId: "w", status: "completed", taskBoardBound: false, finalOutputs: { b: 2 } });
    expect(detail.nodeResults).toMatchObject({
      a: { type: "transform", name: "First", status: "completed", inputs: { value: { n: 1 } }, outputs: { n: 1 }, attempts: 1 },
      b: { type: "transform", status: "completed", inputs: { value: 2 }, outputs: 2 },
    });
    const { durationMs, startedAt, completedAt } = detail.nodeResults.a;
    expect(durationMs).toBe(Date.parse(completedAt) - Date.parse(startedAt));
  });

  it("takes the case of a branch that holds first, else the other, and skips what needs another", async () => {
    const definition = {
      nodes: {
        r: { type: "branch", with: { cases: { big: "parameters.n > 10", odd: "parameters.n % 2 == 1" }, else: "other" } },
        big: value("big", ["r.big"]),
        odd: value("odd", ["r.odd"]),
        other: value("other", ["r.other"]),
        end: value("end", ["big", "odd", "other"]),
      },
    };
    for (const [n, taken] of [
      [11, "big"],
      [3, "odd"],
      [4, "other"],
    ] as const) {
      const { detail } = await play(definition, { n });
      const statuses = Object.fromEntries(["big", "odd", "other", "end"].map((id) => [id, detail.nodeResults[id].status]));
      expect(statuses).toEqual({ big: "skipped", odd: "skipped", other: "skipped", end: "completed", [taken]: "completed" });
      expect(detail.nodeResults.r.outputs).toEqual({ case: taken });
    }
  });

  it("skips a node whose `if` is false", async () => {
    const { detail } = await play({ nodes: { a: value(1), b: { ...value(2, ["a"]), if: "nodes.a.output > 1" } } });
    expect([detail.status, detail.nodeResults.b.status]).toEqual(["completed", "skipped"]);
  });

  it("tries again as often as `retry` says, and says how often it was", async () => {
    const retry = { attempts: 3, delay: "1ms", factor: 2 };
    const { detail, nodes } = await play({ nodes: { a: scripted({ say: "done", fails: 2 }, [], { retry }) } });
    expect(detail.nodeResults.a).toMatchObject({ status: "completed", outputs: "done", attempts: 3 });
    expect(nodes.played.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });

  it("does not try again what trying cannot help", async () => {
    const { detail, nodes } = await play({
      nodes: { a: scripted({ fails: 9, retryable: false }, [], { retry: { attempts: 5, delay: "1ms" } }) },
    });
    expect(nodes.played).toHaveLength(1);
    expect(detail).toMatchObject({ status: "failed", error: { code: "scripted", nodeId: "a" } });
  });

  it("fails with the node that failed; what runs is aborted, and the rest cancelled", async () => {
    const { detail, nodes } = await play({
      nodes: { a: scripted({ fails: 1 }), b: scripted({ gate: "never" }), c: value(1, ["a", "b"]) },
    });
    expect(detail).toMatchObject({ status: "failed", error: { code: "scripted", message: "attempt 1 fails", nodeId: "a" } });
    expect(detail.nodeResults).toMatchObject({ a: { status: "failed" }, b: { status: "cancelled" }, c: { status: "cancelled" } });
    expect(nodes.played.find(({ nodeId }) => nodeId === "b")?.stopped).toBeDefined();
  });

  it("continues after a failure with onError: continue, which expressions can see", async () => {
    const { detail } = await play({
      nodes: { a: scripted({ fails: 1 }, [], { onError: "continue" }), b: value("${{ nodes.a.status }}", ["a"]) },
      outputs: { b: "${{ nodes.b.output }}", a: "${{ has(nodes.a.output) ? 'some' : 'none' }}" },
    });
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { b: "failed", a: "none" } });
  });

  it("ends an attempt when its `timeout` has elapsed", async () => {
    const { detail } = await play({ nodes: { a: scripted({ gate: "never" }, [], { timeout: "20ms" }) } });
    expect(detail).toMatchObject({ status: "failed", error: { code: "timeout", nodeId: "a" } });
  });

  it("fails when its own timeout has elapsed", async () => {
    const { detail } = await play({
      settings: { timeout: "50ms" },
      nodes: { a: scripted({ gate: "never" }), b: value(1, ["a"]) },
    });
    expect(detail).toMatchObject({ status: "failed", error: { code: "timeout" } });
    expect(detail.nodeResults).toMatchObject({ a: { status: "cancelled" }, b: { status: "cancelled" } });
  });

  it("says which expression failed, and shows no value", async () => {
    const { detail } = await play({ nodes: { a: value("${{ parameters.missing.deep }}") } }, { secretive: 1 });
    expect(detail).toMatchObject({ status: "failed", error: { code: "expression_failed", nodeId: "a" } });
    expect(detail.error.message).toContain("parameters.missing.deep");
  });

  it("fails in the author's words", async () => {
    const { detail } = await play(
      { nodes: { a: { type: "fail", with: { message: "No ${{ parameters.what }}" } } } },
      { what: "bread" },
    );
    expect(detail).toMatchObject({ status: "failed", error: { code: "failed", message: "No bread" } });
  });

  it("masks secrets in inputs, outputs, errors and final outputs, and gives nodes the real ones", async () => {
    const { Secret } = await import("@portico/core");
    const { detail, nodes } = await play(
      {
        nodes: {
          a: scripted({ say: "Bearer ${{ secrets.KEY }}" }),
          b: { type: "fail", needs: ["a"], with: { message: "with ${{ nodes.a.output }}" } },
        },
      },
      {},
      { runtime: { secrets: { KEY: new Secret("s3cr3t-value") } } },
    );
    expect(nodes.played[0]?.say).toBe("Bearer s3cr3t-value");
    expect(JSON.stringify(detail)).not.toContain("s3cr3t-value");
    expect(detail.nodeResults.a).toMatchObject({ inputs: { say: "Bearer ***" }, outputs: "Bearer ***" });
    expect(detail.error.message).toBe("with Bearer ***");
  });
});

describe("map and loop (workflow.md)", () => {
  it("map executes its nodes for each item, in order, with limited concurrency", async () => {
    const definition = {
      nodes: {
        all: {
          type: "map",
          with: {
            items: "${{ parameters.list }}",
            concurrency: 2,
            nodes: {
              twice: { type: "transform", with: { value: "${{ item * 2 }}" } },
              more: { type: "transform", needs: ["twice"], with: { value: "${{ nodes.twice.output + index }}" } },
            },
            result: "${{ nodes.more.output }}",
          },
        },
      },
      outputs: { all: "${{ nodes.all.output }}" },
    };
    const { detail } = await play(definition, { list: [5, 6, 7] });
    expect(detail.finalOutputs).toEqual({ all: [10, 13, 16] });
    expect(detail.nodeResults["all[2].more"]).toMatchObject({ status: "completed", outputs: 16 });
    expect(detail.nodeCount).toBeUndefined();
  });

  it("map fails with its first item that fails, and aborts the others", async () => {
    const { detail } = await play({
      nodes: {
        all: {
          type: "map",
          with: {
            items: [0, 1],
            concurrency: 2,
            nodes: { a: scripted({ say: "${{ item }}", fails: "${{ item }}" }) },
            result: "${{ nodes.a.output }}",
          },
        },
      },
    });
    expect(detail).toMatchObject({ status: "failed", error: { code: "scripted" } });
    expect(detail.nodeResults["all[1].a"]).toMatchObject({ status: "failed" });
  });

  it("loop continues until its condition is true, and each iteration sees the previous result", async () => {
    const { detail } = await play({
      nodes: {
        l: {
          type: "loop",
          with: {
            until: "nodes.n.output >= 8",
            maxIterations: 20,
            nodes: { n: { type: "transform", with: { value: "${{ previous == null ? 1 : previous * 2 }}" } } },
            result: "${{ nodes.n.output }}",
          },
        },
      },
      outputs: { l: "${{ nodes.l.output }}" },
    });
    expect(detail.finalOutputs).toEqual({ l: 8 });
    expect(Object.keys(detail.nodeResults).filter((id) => id.startsWith("l["))).toHaveLength(4);
  });

  it.each([
    [{ until: "false", maxIterations: 2 }, "`until` was still false after 2 iterations"],
    [{ until: "false", maxIterations: 1, onExhausted: "fail" }, "`until` was still false after 1 iteration"],
    [{ until: "nodes.n.output == 100" }, "`until` was still false after 100 iterations"],
    [{ until: "index == 1", maxIterations: 2 }, 1],
    [{ until: "false", maxIterations: 3, onExhausted: "complete" }, 2],
    [{ until: "false", maxIterations: 3, onExhausted: "${{ parameters.end }}" }, 2],
    [{ maxIterations: 3 }, 2],
  ])("a loop with %j fails, or completes, after its last iteration: %j", async (given, end) => {
    const inner = { nodes: { n: value("${{ index }}") }, result: "${{ nodes.n.output }}" };
    const { detail } = await play({ nodes: { l: { type: "loop", with: { ...given, ...inner } } } }, { end: "complete" });
    expect(detail.nodeResults.l).toMatchObject(
      typeof end === "number"
        ? { status: "completed", outputs: end }
        : { status: "failed", error: { code: "loop_exhausted", message: end } },
    );
    expect(detail.status).toBe(typeof end === "number" ? "completed" : "failed");
  });
});

describe("workflows that run workflows", () => {
  const eachOf = (workflow: string) => ({
    type: "map",
    with: { items: [1, 2], nodes: { c: { type: "workflow", with: { workflow } } }, result: "${{ item }}" },
  });
  const afterAll = { ...value("${{ 1 }}"), needs: ["sub", "each"] };
  const child = { nodes: { a: value("${{ parameters.n + 1 }}") }, outputs: { n: "${{ nodes.a.output }}" } };
  const parent = {
    nodes: { c: { type: "workflow", with: { workflow: "child", parameters: { n: "${{ parameters.n }}" } } } },
    outputs: { n: "${{ nodes.c.output.n }}" },
  };

  it("give their outputs to the node that ran them, and are runs of their own", async () => {
    await using service = await startWorkflowService({ definitions: { "child.json": child, "parent.json": parent } });
    const runId = await service.trigger("parent", { n: 1 });
    expect(await service.ended("parent", runId)).toMatchObject({ status: "completed", finalOutputs: { n: 2 } });
    const { body } = await service.call("GET", "/api/workflow/child/runs");
    expect(body.runs).toMatchObject([{ status: "completed", parentRunId: runId }]);
  });

  it("are cancelled, and shown as cancelled, if another node ends the run, also if the run is parked at that moment", async () => {
    const gate = { type: "human_gate", with: { title: "Go on?" } };
    await using service = await startWorkflowService({
      definitions: {
        "child.json": { nodes: { wait: gate } },
        "parent.json": {
          nodes: { sub: { type: "workflow", with: { workflow: "child" } }, each: eachOf("child"), no: gate, after: afterAll },
        },
      },
      engine: { parkAfterMs: 0 },
    });
    const runId = await service.trigger("parent");
    const children = async () => (await service.call("GET", "/api/workflow/child/runs")).body.runs;
    await expect
      .poll(async () => (await children()).map(({ status }: any) => status))
      .toEqual(["waiting_human", "waiting_human", "waiting_human"]);
    await service.until("parent", runId, ({ status }) => status === "waiting_human");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "parent" }) };
    const answer = await service.call("POST", `/api/workflow/parent/runs/${runId}/gate`, { decision: "reject" }, { headers });
    expect(answer.status).toBe(200);
    const { status, nodeResults } = await service.ended("parent", runId);
    expect([status, Object.entries<any>(nodeResults).map(([id, node]) => [id, node.status])]).toEqual([
      "failed",
      expect.arrayContaining([
        ["sub", "cancelled"],
        ["each", "cancelled"],
        ["each[0].c", "cancelled"],
        ["each[1].c", "cancelled"],
        ["after", "cancelled"],
      ]),
    ]);
    await expect
      .poll(async () => (await children()).map(({ status }: any) => status))
      .toEqual(["cancelled", "cancelled", "cancelled"]);
  });

  it("fail the node when they fail, and cannot go on for ever", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "parent.json": { nodes: { c: { type: "workflow", with: { workflow: "parent" } } } },
        "lost.json": { nodes: { c: { type: "workflow", with: { workflow: "nowhere" } } } },
      },
    });
    const deep = await service.ended("parent", await service.trigger("parent"));
    expect(deep).toMatchObject({ status: "failed", error: { code: "workflow_failed" } });
    const runs = (await service.call("GET", "/api/workflow/parent/runs")).body.runs;
    expect(runs).toHaveLength(9);
    expect(await service.ended("lost", await service.trigger("lost"))).toMatchObject({ error: { code: "workflow_not_found" } });
  });
});
