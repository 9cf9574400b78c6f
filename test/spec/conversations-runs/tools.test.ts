import { functionTools } from "@portico/adapters/tools/functions";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

const tool = {
  description: "For tests",
  inputSchema: { type: "object", properties: { x: { type: "number" } }, required: ["x"], additionalProperties: false },
  riskLevel: "low" as const,
  requiresConfirmation: false,
};
const runs: unknown[] = [];
const tools = functionTools({
  tools: [
    { ...tool, name: "double", run: async (args, caller) => (runs.push({ args, caller }), `${(args as { x: number }).x * 2}`) },
    { ...tool, name: "breaks", run: () => Promise.reject(new Error("secret hunter2")) },
    {
      ...tool,
      name: "dangerous",
      riskLevel: "critical",
      requiresConfirmation: true,
      run: async () => (runs.push("dangerous"), "done"),
    },
    { ...tool, name: "unlisted", run: async () => "never" },
    { ...tool, name: "odd", inputSchema: { type: "nonsense" }, run: async () => "never" },
  ],
});
const names = ["double", "breaks", "dangerous", "odd", "SendUserMessage", "DelegateToAgent", "nowhere"];
const agents = new Map<string, object>([
  ["helper", { name: "Helper", engine: "scripted", tools: names }],
  ...["second", "third", "fourth", "fifth", "sixth"].map(
    (id) => [id, { name: id, engine: "scripted", tools: ["DelegateToAgent"] }] as const,
  ),
]);

let service: AgentService;
let client: AgentClient;
beforeAll(async () => {
  service = await startAgentService({ agents, adapters: [tools] });
  client = await service.connect("member");
});
afterAll(() => service.close());

/** What a turn's tool answers when it is called so. */
async function called(toolId: string, args: unknown, agentId = "helper"): Promise<ports.ToolResult> {
  const { promise, resolve } = Promise.withResolvers<ports.ToolResult>();
  const prompt = `call ${toolId} ${JSON.stringify(args)}`;
  service.engine.on(prompt, async (_turn, { callTool, signal }) => resolve(await callTool({ toolId, arguments: args }, signal)));
  const { clientRequestId } = await client.start(prompt, {}, { agentId });
  const { event, data } = await client.ended(clientRequestId);
  return event === "query:error" ? Promise.reject(new Error(data.error)) : promise;
}
const textOf = ({ content }: ports.ToolResult) => content.map((part) => (part.type === "text" ? part.text : "")).join("");

describe("the tools of a turn", () => {
  it("are those that the agent names and that are there; it runs them on the user's behalf", async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    service.engine.on("which", async (turn) => resolve(turn.tools.map(({ id }) => id)));
    await client.ended((await client.start("which")).clientRequestId);
    expect(await promise).toEqual(["double", "breaks", "dangerous", "odd", "SendUserMessage", "DelegateToAgent"]);
    expect(await called("double", { x: 21 })).toEqual({ content: [{ type: "text", text: "42" }], isError: false });
    expect(runs).toEqual([
      {
        args: { x: 21 },
        caller: { userId: "member", agentId: "helper", runId: expect.stringMatching(/^run_/), providerId: "demo" },
      },
    ]);
  });

  it.each([
    ["arguments that break its JSON Schema", "double", { x: "21" }, /do not fit the tool's schema: \/x must be number/],
    ["arguments with an undeclared field", "double", { x: 1, y: 2 }, /additional/],
    ["a schema that is none", "odd", { x: 1 }, /cannot be used/],
    ["a failure of its own", "breaks", { x: 1 }, /failed/],
    ["no such tool", "nowhere", {}, /no such tool/],
    ["a tool that the agent does not name", "unlisted", { x: 1 }, /no such tool/],
  ])("gives the model an error result for %s, and the turn goes on", async (_what, toolId, args, text) => {
    const result = await called(toolId, args);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(text);
    expect(JSON.stringify([result, service.telemetry.lines])).not.toContain("hunter2");
  });

  it("a tool that needs confirmation is not run: the model is told so (open points 3)", async () => {
    const result = await called("dangerous", { x: 1 });
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining("confirmation")]);
    expect(runs).not.toContain("dangerous");
  });

  it("are called by the built-in loop with the offline model, and are in the receipt in order (open points 10)", async () => {
    const looped = new Map([["looper", { name: "Looper", tools: ["double"] }]]);
    await using other = await startAgentService({ agents: looped, adapters: [tools] });
    const user = await other.connect("owner");
    const { clientRequestId } = await user.start("Use double", {}, { agentId: "looper" });
    const { data } = await user.ended(clientRequestId);
    const types = user.of(clientRequestId).flatMap(({ data: { message } }) => message?.type ?? []);
    expect(types).toEqual(expect.arrayContaining(["tool_call", "tool_result", "text"]));
    const { body } = await other.call("owner", "GET", `/api/runs/${data.runId}/receipt`);
    expect(body.receipts[0].tool_calls).toEqual([
      { id: expect.any(String), tool_id: "double", name: "double", arguments: { x: 1 }, is_error: false },
    ]);
    expect(body.receipts[0].usage).toMatchObject({ modelCalls: 2 });
  });
});

describe("SendUserMessage (open points 3)", () => {
  it("shows the user a message at once, of type delivery", async () => {
    await called("SendUserMessage", { text: "Half way" });
    const deliveries = client.heard.filter(({ data }) => data?.message?.type === "delivery");
    expect(deliveries.map(({ data }) => [data.message.content, data.message.role])).toEqual([
      [{ message: "Half way", attachments: [] }, "assistant"],
    ]);
  });

  const delivered = async (args: object) => {
    await called("SendUserMessage", args);
    return client.heard.findLast(({ data }) => data?.message?.type === "delivery")?.data.message.content;
  };

  it("takes blocks and references of attachments", async () => {
    const blocks = [
      { type: "heading", text: "Report" },
      { type: "list", items: ["one", "two"] },
      { type: "table", columns: ["a"], rows: [["1"]] },
      { type: "code", text: "1 + 1", language: "js" },
      { type: "link", url: "https://desk.example/report" },
    ];
    expect(await delivered({ text: "Report", blocks, attachments: ["file-1"] })).toEqual({
      message: blocks,
      attachments: ["file-1"],
    });
  });

  it.each<[string, object]>([
    ["of an unknown type", { type: "card", title: "Report", body: { lines: ["one", 2] } }],
    ["with a field that it does not have", { type: "text", text: "Report", size: "one" }],
    ["with a link that runs a script", { type: "link", url: "javascript:alert(1)", text: "Report" }],
  ])("degrades to plain text where there is a block %s (2.6)", async (_what, block) => {
    expect(await delivered({ text: "In words", blocks: [{ type: "text", text: "First" }, block] })).toEqual({
      text: "In words",
      attachments: [],
    });
  });

  it.each([
    {},
    { text: "" },
    { blocks: [{ type: "text", text: "Alone" }] },
    { text: "x", blocks: [] },
    { text: "x", attachments: [1] },
    { text: "x", attachments: Array.from({ length: 33 }, () => "file") },
    { text: "x", more: true },
  ])("is an error for the model to read with %j", async (args) => {
    expect((await called("SendUserMessage", args)).isError).toBe(true);
  });
});

describe("DelegateToAgent (open points 10)", () => {
  const delegate = (agentId: string, prompt: string, more: object = {}) =>
    called("DelegateToAgent", { agentId, prompt, ...more });
  const delegated = async () => (await service.call("member", "GET", "/api/runs?delegated_by=helper")).body.runs;

  it("starts a run of another agent with its delegation, and answers with its words", async () => {
    expect(await delegate("second", "do it")).toEqual({ content: [{ type: "text", text: "You said: do it" }], isError: false });
    const [run] = await delegated();
    expect(run).toMatchObject({
      agent_id: "second",
      user_id: "member",
      status: "completed",
      delegation: {
        fromAgentId: "helper",
        parentRunId: expect.any(String),
        parentClientRequestId: expect.any(String),
        mode: "wait",
      },
    });
    const children = await service.call("member", "GET", `/api/runs?parent_run_id=${run.delegation.parentRunId}`);
    expect(children.body.runs.map(({ run_id }: any) => run_id)).toEqual([run.run_id]);
    const both = await service.call(
      "member",
      "GET",
      `/api/runs?delegated_by=helper&parent_run_id=${run.delegation.parentRunId}&agent_id=third`,
    );
    expect(both.body.runs).toEqual([]);
    // A delegated task is one turn.
    expect((await client.followUp(run.session_id, "more")).status).toBe(404);
  });

  it("in the background, it does not wait", async () => {
    const gate = createGate();
    service.engine.on("background work", () => gate.opened);
    const result = await delegate("second", "background work", { mode: "background" });
    const { runId } = JSON.parse(textOf(result));
    expect((await service.call("member", "GET", `/api/runs/${runId}`)).body).toMatchObject({
      delegation: { mode: "background" },
    });
    gate.open();
    await expect.poll(async () => (await service.call("member", "GET", `/api/runs/${runId}`)).body.status).toBe("completed");
  });

  it("never goes in a circle, at most four deep, and only to agents that are there", async () => {
    expect(textOf(await delegate("nobody", "x"))).toMatch(/no such agent/);
    expect(textOf(await delegate("helper", "x"))).toMatch(/no circles/);
    const chain = ["second", "third", "fourth", "fifth", "sixth"];
    const told: string[] = [];
    for (const [at, agentId] of chain.entries()) {
      service.engine.on(`level ${at}`, async (_turn, { callTool, signal, say }) => {
        const next = { toolId: "DelegateToAgent", arguments: { agentId: chain[at + 1] ?? "helper", prompt: `level ${at + 1}` } };
        const result = await callTool(next, signal);
        told[at] = textOf(result);
        await say({ type: "text", delta: `${agentId} done` });
      });
    }
    expect((await delegate("second", "level 0")).isError).toBe(false);
    expect(told.slice(0, 3)).toEqual(["third done", "fourth done", "fifth done"]);
    expect(told[3]).toMatch(/at most 4 deep/);
  });

  it("a task that fails is an error result; a stopped parent stops the task that it waits for", async () => {
    service.engine.on("fails below", () => Promise.reject(new Error("no")));
    expect(textOf(await delegate("second", "fails below"))).toMatch(/did not finish: error/);

    service.engine.on("endless below", (_turn, context) => untilStopped(context));
    service.engine.on("parent", async (_turn, { callTool, signal }) => {
      await callTool({ toolId: "DelegateToAgent", arguments: { agentId: "second", prompt: "endless below" } }, signal);
    });
    const { clientRequestId } = await client.start("parent");
    const { sessionId, runId } = await client.event("query:started", clientRequestId);
    const child = async () => (await service.call("member", "GET", `/api/runs?parent_run_id=${runId}`)).body.runs[0];
    await expect.poll(async () => (await child())?.status).toBe("running");
    client.socket.emit("query:abort", { sessionId });
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("interrupted");
    await expect.poll(async () => (await child()).interruption_reason).toBe("user_stop");
  });
});
