import { join } from "node:path";
import { mcpTools } from "@portico/adapters/tools/mcp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { answerEvents } from "../../harness/answer-events.ts";
import { startLoopedAgents } from "../../harness/looped-agents.ts";
import { referenceMcpServer } from "../../harness/oracle.ts";
import { events } from "../../harness/upstream-answers.ts";

const everything = mcpTools({
  id: "everything",
  command: process.execPath,
  args: [referenceMcpServer("everything")],
});
/** A server that never answers must not delay callers who do not need it. */
const absent = mcpTools({ id: "absent", command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"] });

let service: AgentService;
let client: AgentClient;
beforeAll(async () => {
  const tools = ["everything/echo", "everything/get-sum", "everything/get-tiny-image"];
  service = await startAgentService({
    agents: new Map([["looper", { name: "Looper", tools }]]),
    adapters: [everything, absent],
  });
  client = await service.connect("owner");
});
afterAll(() => service.close());

async function receiptOf(prompt: string) {
  const { clientRequestId } = await client.start(prompt, {}, { agentId: "looper" });
  const { event, data } = await client.ended(clientRequestId);
  expect(event).toBe("query:complete");
  const { body } = await service.call("owner", "GET", `/api/runs/${data.runId}/receipt`);
  return { receipt: body.receipts[0], heard: client.of(clientRequestId).flatMap(({ data: { message } }) => message ?? []) };
}

describe("an agent with the tools of a real MCP server (open points 3)", () => {
  it("calls one by the name that the model knows, and answers with what it said", async () => {
    const { receipt, heard } = await receiptOf("Use everything_echo");
    expect(receipt.tool_calls).toMatchObject([{ tool_id: "everything/echo", name: "everything_echo", is_error: false }]);
    const result = heard.find(({ type }) => type === "tool_result");
    expect(result.content.result.content[0].text).toMatch(/^Echo: /);
    expect(receipt.output).toContain("Echo: ");
  });

  it("gets images as images", async () => {
    const { receipt, heard } = await receiptOf("Use everything_get-tiny-image");
    expect(receipt.tool_calls).toMatchObject([{ tool_id: "everything/get-tiny-image", is_error: false }]);
    const result = heard.find(({ type }) => type === "tool_result");
    expect(result.content.result.content).toContainEqual({ type: "image", mimeType: "image/png", data: expect.any(String) });
  });
});

it("an agent gets the tools of two servers that have the same name for the model, each under a name of its own", async () => {
  const program = [join(import.meta.dirname, "../../conformance/processes/mcp-server.ts")];
  const server = (id: string) => mcpTools({ id, command: process.execPath, args: program });
  await using looped = await startLoopedAgents(
    { both: { provider: "messages", model: "echo-large", tools: ["shop.a/greet", "shop_a/greet", "shop_a/break"] } },
    { adapters: [server("shop.a"), server("shop_a")] },
  );
  await looped.ask("both", "go");
  const names: string[] = (await looped.sent(1)).tools.map(({ name }: any) => name);
  expect(names).toEqual([
    expect.stringMatching(/^shop_a_greet_\w{8}$/),
    expect.stringMatching(/^shop_a_greet_\w{8}$/),
    "shop_a_break",
  ]);
  expect(new Set(names).size).toBe(3);
  looped.upstream.reset();
  const call = { id: "call_1", name: names[1]!, input: { name: "Ada" } };
  looped.upstream.answerNext(events(answerEvents("messages", { calls: [call] })));
  const { receipt } = await looped.ask("both", "go");
  expect(receipt.tool_calls).toMatchObject([{ tool_id: "shop_a/greet", is_error: false }]);
});
