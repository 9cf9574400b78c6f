import { expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const definitions = {
  "triage.json": {
    name: "Triage",
    description: "Sorts tickets",
    creator: "Support",
    parameters: { type: "object", required: ["ticket"], properties: { ticket: { type: "string" } } },
    settings: { timeout: "10m" },
    nodes: {
      route: { type: "branch", with: { cases: { bug: "parameters.ticket == 'bug'" }, else: "other" } },
      each: {
        type: "map",
        name: "Each word",
        needs: ["route.bug"],
        if: "run.id != ''",
        onError: "continue",
        with: {
          items: "${{ [1, 2] }}",
          nodes: {
            double: { type: "transform", with: { value: "${{ item * 2 }}" } },
            again: { type: "transform", needs: ["double"], with: { value: "${{ nodes.double.output }}" } },
          },
          result: "${{ nodes.again.output }}",
        },
      },
    },
  },
};

it("shows what a workflow takes, and the graph of its nodes with those within them, but not what they are given", async () => {
  await using service = await startWorkflowService({ definitions });
  const { status, body } = await service.call("GET", "/api/workflow/triage/definition");
  expect(status).toBe(200);
  const plain = { conditional: false, onError: "fail" };
  expect(body).toEqual({
    ...{ id: "triage", name: "Triage", description: "Sorts tickets", creator: "Support" },
    ...{ nodeCount: 2, dslPath: "triage.json", timeoutMs: 600_000, editable: false },
    parameters: definitions["triage.json"].parameters,
    nodes: [
      { id: "route", type: "branch", needs: [], cases: ["bug", "other"], ...plain },
      {
        ...{ id: "each", type: "map", name: "Each word", needs: [{ node: "route", case: "bug" }] },
        ...{ conditional: true, onError: "continue" },
      },
      { id: "each.double", parent: "each", type: "transform", needs: [], ...plain },
      { id: "each.again", parent: "each", type: "transform", needs: [{ node: "each.double" }], ...plain },
    ],
  });
  // What its history calls them is the same, with the elements' numbers.
  const runId = await service.trigger("triage", { ticket: "bug" });
  const { nodeResults } = await service.ended("triage", runId);
  const played = Object.keys(nodeResults).map((id) => id.replaceAll(/\[\d+\]/g, ""));
  expect(new Set(played)).toEqual(new Set(body.nodes.map(({ id }: { id: string }) => id)));
});

it("is 404 workflow_not_found for a workflow that is not deployed", async () => {
  await using service = await startWorkflowService({ definitions });
  const { status, body } = await service.call("GET", "/api/workflow/none/definition");
  expect([status, body.code]).toEqual([404, "workflow_not_found"]);
});
