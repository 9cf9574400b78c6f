import { expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

/** Each level of a list doubles the work. */
const next = { items: { allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] } };
const slow = {
  parameters: { type: "object", properties: { list: { $ref: "#/$defs/a" } }, $defs: { a: next } },
  nodes: { a: { type: "transform", with: { value: 1 } } },
};
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);

it("parameters that take long to be checked are refused, and other requests are answered meanwhile", async () => {
  await using service = await startWorkflowService({ definitions: { "slow.json": slow } });
  const trigger = (levels: number) => service.call("POST", "/api/workflow/webhook?id=slow", { list: nested(levels) });
  const ended: string[] = [];
  const refused = trigger(100).finally(() => ended.push("trigger"));
  expect((await service.call("GET", "/api/workflows")).status).toBe(200);
  ended.push("list");
  const { status, body } = await refused;
  expect(ended).toEqual(["list", "trigger"]);
  expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining("takes more than 1 s of processor time")]);
  expect((await trigger(10)).status).toBe(200);
});
