import { defineAdapter, ports } from "@portico/core";
import * as v from "valibot";
import { expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

it("a map of many quick items starts few of them in a turn of the event loop, however many workers it has", async () => {
  let started = 0;
  const quick = defineAdapter({
    name: "workflow-nodes/quick",
    port: ports.workflowNodes,
    needs: {},
    open: (): ports.WorkflowNode<object> => ({
      ...{ type: "quick", input: v.strictObject({}), repeatable: true, pure: true },
      run: async () => (started++, null),
    }),
  })(undefined);
  await using service = await startWorkflowService({
    definitions: {
      "w.json": {
        nodes: {
          each: {
            type: "map",
            with: { items: "lists.range(2000)", concurrency: 64, nodes: { a: { type: "quick", with: {} } }, result: "index" },
          },
        },
      },
    },
    adapters: [quick],
  });
  let [most, before, isEnded] = [0, 0, false];
  const turn = () => {
    most = Math.max(most, started - before);
    before = started;
    if (!isEnded) setImmediate(turn);
  };
  setImmediate(turn);
  await service.ended("w", await service.trigger("w"));
  isEnded = true;
  expect(started).toBe(2000);
  expect(most).toBeLessThanOrEqual(64);
});
