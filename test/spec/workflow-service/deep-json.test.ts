import { defineAdapter, ports, Secret } from "@portico/core";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deepList } from "../../harness/deep-json.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const BODY_LEVELS = 512;
const { NODE_OUTPUT_LEVELS: OUTPUT_LEVELS } = ports;

/** Gives a list with as many levels. */
const deepNode = defineAdapter({
  name: "workflow-nodes/deep",
  port: ports.workflowNodes,
  needs: {},
  open: (): ports.WorkflowNode<{ readonly levels: number }> => ({
    type: "deep",
    input: v.strictObject({ levels: v.number() }),
    repeatable: true,
    run: async ({ input }) => JSON.parse(deepList(input.levels)) as unknown,
  }),
})(undefined);

const deep = { type: "deep", with: { levels: "${{ parameters.levels }}" } };
const copy = (value: unknown, needs: readonly string[] = []) => ({ type: "transform", needs, with: { value } });
const definitions = {
  // Defaults, a secret and a gate: whatever copies, masks and compares.
  "takes.json": {
    parameters: { type: "object", properties: { text: { type: "string", default: "x" } } },
    nodes: { a: copy("${{ parameters }}"), s: copy("${{ secrets.KEY }}"), ok: { type: "human_gate", with: { title: "Go on?" } } },
    outputs: { a: "${{ nodes.a.output }}", values: "${{ nodes.ok.output.values }}" },
  },
  "gives.json": {
    nodes: { a: deep, b: copy("${{ nodes.a.output }}", ["a"]) },
    outputs: { size: "${{ size(nodes.b.output) }}" },
  },
  "outputs.json": { nodes: { a: deep }, outputs: { a: "${{ nodes.a.output }}" } },
  "each.json": {
    nodes: { m: { type: "map", with: { items: "[1]", nodes: { a: deep }, result: "nodes.a.output" } } },
  },
  "grows.json": {
    nodes: {
      l: {
        type: "loop",
        with: { maxIterations: "${{ parameters.levels }}", nodes: { n: copy(1) }, result: ["${{ previous }}"] },
      },
    },
  },
  "doubles.json": {
    nodes: {
      l: { type: "loop", with: { maxIterations: 100, nodes: { n: copy(1) }, result: ["${{ previous }}", "${{ previous }}"] } },
    },
  },
  "parent.json": {
    nodes: {
      a: deep,
      c: { type: "workflow", needs: ["a"], with: { workflow: "takes", parameters: { a: "${{ nodes.a.output }}" } } },
    },
  },
};

let service: WorkflowService;
beforeAll(async () => {
  const runtime = { secrets: { KEY: new Secret("hidden-word") } };
  service = await startWorkflowService({ definitions, adapters: [deepNode], runtime });
});
afterAll(() => service.close());

const ended = async (workflowId: string, levels: number) =>
  service.ended(workflowId, await service.trigger(workflowId, { levels }));
const refused = {
  status: 400,
  body: { code: "invalid_request", details: { issues: ["body: expected at most 512 levels of lists and objects"] } },
};

describe('JSON that a caller nests too deep (workflow service, "Limits")', () => {
  it.each([BODY_LEVELS + 1, 5_000, 500_000])("%i levels of a trigger's parameters are 400", async (levels) => {
    const body = `{"a":${deepList(levels - 1)}}`;
    expect(await service.call("POST", "/api/workflow/webhook?id=takes", body)).toMatchObject(refused);
  });

  it.each([BODY_LEVELS + 1, 5_000])("%i levels of a grant's parameters, and of a gate's values, are 400", async (levels) => {
    const grant = await service.grant({ workflowId: "takes" });
    const started = `{"executionGrantId":${JSON.stringify(grant)},"idempotencyKey":"k","workflowId":"takes"`;
    expect(
      await service.call("POST", "/api/workflow/run", `${started},"parameters":{"a":${deepList(levels - 2)}}}`),
    ).toMatchObject(refused);
    const { body } = await service.call("POST", "/api/workflow/run", `${started}}`);
    await service.until("takes", body.runId, ({ status }) => status === "waiting_human");
    const decide = (values: string) =>
      service.call("POST", `/api/workflow/takes/runs/${body.runId}/gate`, `{"decision":"approve","values":${values}}`, {
        headers: { "x-execution-grant": grant },
      });
    expect(await decide(`{"a":${deepList(levels - 2)}}`)).toMatchObject(refused);
    expect((await decide("{}")).status).toBe(200);
    await service.ended("takes", body.runId);
  });

  it("is taken up to the limit, through defaults, masks, nodes, gates and outputs", async () => {
    const a = JSON.parse(deepList(BODY_LEVELS - 1)) as object;
    const runId = await service.trigger("takes", { a });
    await service.until("takes", runId, ({ status }) => status === "waiting_human");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "takes" }) };
    const values = { a: JSON.parse(deepList(BODY_LEVELS - 2)) as object };
    const decide = () =>
      service.call("POST", `/api/workflow/takes/runs/${runId}/gate`, { decision: "approve", values }, { headers });
    // The second is compared with the first, where the gate has not closed yet.
    const [first, second] = [await decide(), await decide()];
    expect(first.status).toBe(200);
    expect([200, 409]).toContain(second.status);
    const detail = await service.ended("takes", runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { a: { text: "x" } } });
    expect(JSON.stringify(detail.finalOutputs)).toBe(JSON.stringify({ a: { a, text: "x" }, values }));
    expect(detail.nodeResults.s.outputs).toBe("***");
  });
});

describe('JSON that a node nests too deep (workflow service, "Limits")', () => {
  const tooDeep = {
    code: "output_too_deep",
    message: `The output has more than ${OUTPUT_LEVELS} levels of lists and objects`,
  };

  it("is taken up to the limit, and given to others", async () => {
    expect(await ended("gives", OUTPUT_LEVELS)).toMatchObject({ status: "completed", finalOutputs: { size: 1 } });
    expect(await ended("outputs", OUTPUT_LEVELS - 1)).toMatchObject({ status: "completed" });
    expect(await ended("each", OUTPUT_LEVELS - 1)).toMatchObject({ status: "completed" });
    expect(await ended("grows", OUTPUT_LEVELS)).toMatchObject({ status: "completed" });
  });

  it.each([OUTPUT_LEVELS + 1, 5_000, 200_000])("%i levels fail the node", async (levels) => {
    expect(await ended("gives", levels)).toMatchObject({ status: "failed", error: { ...tooDeep, nodeId: "a" } });
  });

  it("fails values that are built from outputs: a map's list, a loop's result, a run's outputs, another workflow's parameters", async () => {
    expect(await ended("each", OUTPUT_LEVELS)).toMatchObject({ status: "failed", error: { ...tooDeep, nodeId: "m" } });
    expect(await ended("grows", OUTPUT_LEVELS + 1)).toMatchObject({ status: "failed", error: { ...tooDeep, nodeId: "l" } });
    expect(await ended("outputs", OUTPUT_LEVELS)).toMatchObject({
      status: "failed",
      error: { code: "outputs_failed", message: tooDeep.message },
    });
    const parent = await ended("parent", OUTPUT_LEVELS);
    expect(parent).toMatchObject({ status: "failed", error: { code: "invalid_parameters", nodeId: "c" } });
    expect(parent.error.message).toContain(`at most ${OUTPUT_LEVELS} levels`);
  });

  it("and what a loop doubles at each turn is too large before it fills the memory", async () => {
    expect(await ended("doubles", 1)).toMatchObject({ status: "failed", error: { code: "output_too_large", nodeId: "l" } });
  });
});
