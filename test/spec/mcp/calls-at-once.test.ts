import { workflowMcp } from "@portico/mcp/workflow";
import { expect, it } from "vitest";
import { connectMcp, textOf } from "../../harness/mcp-client.ts";
import { SERVICE_TOKEN, startWorkflowService } from "../../harness/workflow-app.ts";

it("1,024 calls wait for their runs in a process at once; others are refused, until one has ended", async () => {
  const held = { mcp: true, nodes: { a: { type: "scripted", with: { say: "held", gate: "held" } } } };
  await using service = await startWorkflowService({
    definitions: { "held.json": held },
    plugins: [workflowMcp({ version: "1.2.3", publicUrl: "https://flows.example/" })],
  });
  const client = await connectMcp(service.url, SERVICE_TOKEN);
  const refused: string[] = [];
  const calls = Array.from({ length: 1030 }, async () => {
    const result = await client.callTool({ name: "held" }, { timeout: 150_000 });
    if (result.isError) refused.push(textOf(result));
    return result;
  });
  const tooMany = "The service executes too many calls at once: try again later";
  await expect.poll(() => refused, { timeout: 100_000 }).toEqual(Array.from({ length: 6 }, () => tooMany));
  service.nodes.gate("held").open();
  expect((await Promise.all(calls)).filter(({ isError }) => !isError)).toHaveLength(1024);
  expect((await client.callTool({ name: "held" })).isError).toBeUndefined();
  await client.close();
}, 180_000);
