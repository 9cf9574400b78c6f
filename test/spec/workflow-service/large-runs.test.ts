import { expect, it } from "vitest";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

// What a run may have at most takes seconds of processor time.

const value = (output: unknown, needs: readonly string[] = []) => ({ type: "transform", needs, with: { value: output } });

async function play(definition: object, parameters: object, options: WorkflowServiceOptions = {}) {
  await using service = await startWorkflowService({ definitions: { "w.json": definition }, ...options });
  const runId = await service.trigger("w", parameters);
  return await service.ended("w", runId);
}

it("a run limits the outputs of every node and of the run, and keeps the part that fits", async () => {
  const double = { n: value("${{ previous == null ? parameters.text : previous + previous }}") };
  const large = (turns: number) => ({
    type: "loop",
    with: { maxIterations: turns, nodes: double, result: "${{ nodes.n.output }}" },
  });
  const parameters = { text: "x".repeat(500_000) };
  const over = await play({ nodes: { l: large(5) } }, parameters);
  expect(over).toMatchObject({ status: "failed", error: { code: "output_too_large" } });
  // Four megabytes each, and three of them given to one.
  const inputs = ["${{ nodes.l.output }}", "${{ nodes.l.output }}", "${{ nodes.l.output }}"];
  const size = { type: "transform", needs: ["l"], with: { value: "${{ size(nodes.l.output) }}" } };
  const many = await play({ nodes: { l: large(4), size, given: value(inputs, ["l"]) } }, parameters);
  expect(many).toMatchObject({ status: "failed", error: { code: "output_too_large", nodeId: "given" } });
  expect(many.nodeResults.given.inputs).toMatch(/^\(left out/);
  expect(many.nodeResults.size).toMatchObject({ status: "completed", outputs: 4_000_000 });
  const outputs = await play(
    { nodes: { l: large(4) }, outputs: { a: "${{ nodes.l.output }}", b: "${{ nodes.l.output }}" } },
    parameters,
  );
  expect(outputs).toMatchObject({ status: "failed", error: { code: "outputs_failed" } });
});

it("a map over 10,000 items completes", async () => {
  const nodes = createScriptedNodes();
  const list = Array.from({ length: 10_000 }, (_, at) => at);
  const definition = {
    nodes: {
      all: {
        type: "map",
        with: { items: "${{ parameters.list }}", nodes: { a: value("${{ item + 1 }}") }, result: "${{ nodes.a.output }}" },
      },
    },
    outputs: { sum: "${{ size(nodes.all.output) }}" },
  };
  const detail = await play(definition, { list }, { nodes });
  expect(detail.finalOutputs).toEqual({ sum: 10_000 });
  expect(Object.keys(detail.nodeResults)).toHaveLength(10_001);
});
