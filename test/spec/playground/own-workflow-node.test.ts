import { memoryRecords } from "@portico/adapters/records/memory";
import { expect, it } from "vitest";
import { counterNode } from "../../../playground/own-workflow-node.ts";
import { workflowNodesConformance } from "../../conformance/workflow-nodes.ts";
import { openNode } from "../../harness/run-node.ts";

workflowNodesConformance("playground/own-workflow-node.ts", () => ({
  adapter: counterNode({ most: 10 }),
  others: [memoryRecords()],
  works: { name: "tickets", by: 2 },
  broken: [{}, { name: "No Name" }, { name: "tickets", by: 0.5 }],
  fails: { name: "hidden-word", by: 11 },
}));

it("a step counts once, however often and beside whom it is done", async () => {
  await using node = await openNode(counterNode({}), [memoryRecords()]);
  const runs = ["run_1", "run_2", "run_3", "run_1", "run_2"];
  await Promise.all(runs.map((runId) => node.run({ name: "tickets" }, { runId })));
  expect(await node.run({ name: "tickets" }, { runId: "run_4" })).toEqual({ count: 4 });
  expect(await node.run({ name: "tickets" }, { runId: "run_4" })).toEqual({ count: 4 });
});
