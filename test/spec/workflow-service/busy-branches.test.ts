import { expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

it("a run whose gate waits for long goes on in its other branches, however long their work takes between two stored results", async () => {
  const list = { items: "parameters.items", nodes: { double: { type: "transform", with: { value: "${{ item * 2 }}" } } } };
  await using service = await startWorkflowService({
    definitions: {
      "w.json": {
        parameters: { items: { type: "array" } },
        nodes: {
          ok: { type: "human_gate", with: { title: "Go on?" } },
          pause: { type: "wait", with: { for: "100ms" } },
          each: { type: "map", needs: ["pause"], with: { ...list, result: "nodes.double.output" } },
          after: { type: "transform", needs: ["each"], with: { value: "${{ nodes.each.output[0] }}" } },
        },
      },
    },
    engine: { parkAfterMs: 0 },
  });
  const runId = await service.trigger("w", { items: Array.from({ length: 5000 }, (_, at) => at + 1) });
  await expect.poll(async () => (await service.detail("w", runId)).nodeResults.after?.status).toBe("completed");
  expect(await service.detail("w", runId)).toMatchObject({ status: "waiting_human" });
});
