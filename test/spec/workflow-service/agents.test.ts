import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import { createScriptedEngine, type Script, untilStopped } from "../../harness/scripted-agent.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const ask = {
  nodes: { a: { type: "agent", with: { agent: "helper", prompt: "Look at ${{ parameters.what }}" } } },
  outputs: { text: "${{ nodes.a.output.text }}", runId: "${{ nodes.a.output.runId }}" },
};
const definitions = { "ask.json": ask };

describe("agents in workflows (workflow.md)", () => {
  it("are given a turn, whose words and run are the node's output", async () => {
    await using service = await startWorkflowService({ definitions, agents: {} });
    const detail = await service.ended("ask", await service.trigger("ask", { what: "the door" }));
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { text: "You said: Look at the door" } });
    const run = await service.agents!.call("owner", "GET", `/api/runs/${detail.finalOutputs.runId}`);
    expect(run.body).toMatchObject({ agent_id: "helper", user_id: "owner", status: "completed" });
  });

  it("whose turn fails fail the node", async () => {
    const engine = createScriptedEngine();
    engine.otherwise(async () => {
      throw new Error("no idea");
    });
    await using service = await startWorkflowService({ definitions, agents: { engine } });
    expect(await service.ended("ask", await service.trigger("ask", { what: "x" }))).toMatchObject({
      status: "failed",
      error: { code: "agent_failed", nodeId: "a" },
    });
  });

  it("are stopped when the run is cancelled", async () => {
    const engine = createScriptedEngine();
    engine.otherwise((_turn, context) => untilStopped(context));
    await using service = await startWorkflowService({ definitions, agents: { engine } });
    const runId = await service.trigger("ask", { what: "x" });
    await expect.poll(() => engine.played.length).toBe(1);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "ask" }) };
    await service.call("POST", `/api/workflow/ask/runs/${runId}/cancel`, undefined, { headers });
    expect((await service.ended("ask", runId)).status).toBe("cancelled");
    await expect
      .poll(async () => (await service.agents!.call("owner", "GET", "/api/runs")).body.runs[0])
      .toMatchObject({ status: "idle", interruption_reason: "workflow_over" });
  });

  it("are stopped when the run is cancelled after it was parked", async () => {
    const engine = createScriptedEngine();
    engine.otherwise((_turn, context) => untilStopped(context));
    await using service = await startWorkflowService({ definitions, engine: { parkAfterMs: 0 }, agents: { engine } });
    const runId = await service.trigger("ask", { what: "x" });
    await expect.poll(() => engine.played.length).toBe(1);
    await expect.poll(async () => (await service.app.port(ports.engine).status(runId))?.state).toBe("waiting");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "ask" }) };
    await service.call("POST", `/api/workflow/ask/runs/${runId}/cancel`, undefined, { headers });
    await expect
      .poll(async () => (await service.agents!.call("owner", "GET", "/api/runs")).body.runs[0])
      .toMatchObject({ status: "idle", interruption_reason: "workflow_over" });
  });

  it("a definition that names an agent is refused with a clear message if the service has no agents", async () => {
    await using service = await startWorkflowService({ definitions });
    expect((await service.call("GET", "/api/workflows")).body.workflows).toEqual([]);
    expect(JSON.stringify(service.telemetry.lines)).toContain("No agents are configured in this instance");
  });
});

describe("workflows of agents: the tool RunWorkflow (open points 3)", () => {
  it("starts a workflow on behalf of the turn's user, and says why it cannot", async () => {
    const engine = createScriptedEngine();
    const results: unknown[] = [];
    engine.otherwise(async (_turn, { callTool, signal }) => {
      for (const args of [
        { workflowId: "plain", parameters: { n: 1 } },
        { workflowId: "plain", parameters: { n: "x" } },
        { workflowId: "none" },
        {},
      ])
        results.push(await callTool({ toolId: "RunWorkflow", arguments: args }, signal).catch((error: Error) => error.name));
    });
    const plain = {
      parameters: { type: "object", properties: { n: { type: "integer" } } },
      nodes: { a: { type: "transform", with: { value: "${{ parameters.n }}" } } },
    };
    const agents = new Map([["helper", { name: "Helper", engine: "scripted", tools: ["RunWorkflow"] }]]);
    await using service = await startWorkflowService({ definitions: { "plain.json": plain }, agents: { engine, agents } });
    const client = await service.agents!.connect("member");
    const { clientRequestId } = await client.start("go");
    await client.ended(clientRequestId);
    expect(results).toMatchObject([{ isError: false }, { isError: true }, { isError: true }, { isError: true }]);
    const { runs } = (await service.call("GET", "/api/workflow/plain/runs")).body;
    expect(runs).toMatchObject([{ userId: "member" }]);
  });
});

describe("a chain of workflows that run each other", () => {
  const DEEPEST = 8;
  const agents = new Map(
    ["helper", "second"].map((id) => [id, { name: id, engine: "scripted", tools: ["RunWorkflow", "DelegateToAgent"] }]),
  );
  const again = { toolId: "RunWorkflow", arguments: { workflowId: "loop" } };
  const textOf = (result: ports.ToolResult) => JSON.stringify(result.content);

  /** What the last of the chain is told, when each of its turns did this. */
  async function endOf(play: Script, start: (service: WorkflowService) => Promise<unknown>) {
    const engine = createScriptedEngine();
    const refused: string[] = [];
    engine.otherwise(async (turn, context) => {
      const callTool: ports.TurnContext["callTool"] = async (call, signal) => {
        const result = await context.callTool(call, signal);
        if (result.isError) refused.push(textOf(result));
        return result;
      };
      return play(turn, { ...context, callTool });
    });
    const loop = { nodes: { a: { type: "agent", with: { agent: "helper", prompt: "go" } } } };
    await using service = await startWorkflowService({ definitions: { "loop.json": loop }, agents: { engine, agents } });
    await start(service);
    await expect.poll(() => refused, { timeout: 30_000 }).not.toEqual([]);
    return { refused, runs: (await service.call("GET", "/api/workflow/loop/runs")).body.runs.length };
  }
  const ended = { refused: [expect.stringContaining("also through agents, at most 8 deep")], runs: DEEPEST + 1 };

  it("ends if agents run the workflow that gives them a turn", async () => {
    const play: Script = async (_turn, { callTool, signal }) => void (await callTool(again, signal));
    expect(await endOf(play, (service) => service.trigger("loop"))).toEqual(ended);
    // A person's own turn stands above the first run.
    const byPerson = (service: WorkflowService) => service.agents!.connect("owner").then((client) => client.start("go"));
    expect(await endOf(play, byPerson)).toEqual(ended);
  });

  it("ends if agents delegate that to other agents", async () => {
    const play: Script = async (turn, { callTool, signal }) => {
      const delegated = { toolId: "DelegateToAgent", arguments: { agentId: "second", prompt: "you" } };
      await callTool(turn.agentId === "helper" ? delegated : again, signal);
    };
    expect(await endOf(play, (service) => service.trigger("loop"))).toEqual(ended);
  });

  it("is not made longer by what a model says", async () => {
    const play: Script = async (_turn, { callTool, signal }) => {
      for (const lie of [{ workflowDepth: 0 }, { caller: {} }]) {
        const call = { toolId: "RunWorkflow", arguments: { ...again.arguments, ...lie } };
        await callTool(call, signal);
      }
    };
    const { refused, runs } = await endOf(play, (service) => service.trigger("loop"));
    expect([refused[0], runs]).toEqual([expect.stringContaining("The arguments do not fit"), 1]);
  });

  it("ends if nodes call the tool directly", async () => {
    const loop = { nodes: { a: { type: "tool", with: { tool: "RunWorkflow", arguments: { workflowId: "loop" } } } } };
    const options = { adapters: [toolNode()], agents: {}, definitions: { "loop.json": loop } };
    await using service = await startWorkflowService(options);
    await service.trigger("loop");
    const runs = async () => (await service.call("GET", "/api/workflow/loop/runs")).body.runs;
    await expect.poll(async () => (await runs())[0].error?.message).toContain("at most 8 deep");
    expect(await runs()).toHaveLength(DEEPEST + 1);
  });
});
