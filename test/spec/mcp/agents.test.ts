import { functionTools } from "@portico/adapters/tools/functions";
import { agentMcp } from "@portico/mcp/agent";
import { afterEach, describe, expect, it } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { connectMcp, REVISIONS, textOf } from "../../harness/mcp-client.ts";
import { promptOf, untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
afterEach(() => service.close());

const agents = new Map([
  ["helper", { name: "Helper", description: "Answers questions.", engine: "scripted", mcp: true, tools: ["erase"] }],
  ["second", { name: "Second", engine: "scripted" }],
]);

/** A service whose agent `helper` is a tool. */
async function start(options: AgentServiceOptions = {}): Promise<void> {
  const approvalsUrl = (runId: string) => `https://desk.example/#/runs/${runId}`;
  service = await startAgentService({ agents, ...options, plugins: [agentMcp({ approvalsUrl })] });
}

const connect = (revision: (typeof REVISIONS)[number], token: string = TOKENS.member) => connectMcp(service.url, token, revision);
const runs = async () => (await service.call("owner", "GET", "/api/runs")).body.runs as any[];
const call = (message: unknown) => ({ name: "helper", arguments: { message } });

describe.each(REVISIONS)("agents as tools, for a client of a revision of %s (an extension)", (revision) => {
  it("are those whose `agent.json` says `mcp: true`", async () => {
    await start();
    const client = await connect(revision);
    const { tools } = await client.listTools();
    expect(tools).toEqual([
      {
        ...{ name: "helper", title: "Helper", description: "Answers questions." },
        inputSchema: expect.objectContaining({ type: "object", required: ["message"] }),
      },
    ]);
    await expect(client.callTool({ name: "second", arguments: { message: "x" } })).rejects.toThrow('There is no tool "second"');
    await client.close();
  });

  it("answer with the text of a turn of the token's user", async () => {
    await start();
    service.engine.otherwise(async (turn, { say }) => void (await say({ type: "text", delta: `You said: ${promptOf(turn)}` })));
    const client = await connect(revision);
    const result = await client.callTool(call("Hello"));
    expect([result.isError, textOf(result)]).toEqual([undefined, "You said: Hello"]);
    expect(await runs()).toEqual([expect.objectContaining({ status: "completed", agent_id: "helper" })]);
    expect((await service.call("other", "GET", "/api/runs")).body.runs).toEqual([]);
    await client.close();
  });

  it("answer with an error that names the place, if the arguments do not match the schema", async () => {
    await start();
    const client = await connect(revision);
    const result = await client.callTool(call(7));
    expect([result.isError, textOf(result)]).toEqual([
      true,
      "The arguments do not match the tool's schema\nmessage: expected string",
    ]);
    expect(await runs()).toEqual([]);
    await client.close();
  });

  it("answer with the failure of a turn that fails", async () => {
    await start();
    service.engine.otherwise(() => Promise.reject(new Error("a secret")));
    const client = await connect(revision);
    const result = await client.callTool(call("Hello"));
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringMatching(/^Run run_\w+ is failed: /)]);
    expect(textOf(result)).not.toContain("a secret");
    await client.close();
  });

  it("tell their progress by calls of tools and texts", async () => {
    await start();
    service.engine.otherwise(async (_turn, { say }) => {
      await say({ type: "tool_call", callId: "c1", toolId: "look", name: "look", arguments: {} });
      await say({ type: "tool_result", callId: "c1", toolId: "look", result: { content: [], isError: false } });
      await say({ type: "text", delta: "Found." });
    });
    const told: object[] = [];
    const client = await connect(revision);
    await client.callTool(call("Hello"), { onprogress: (progress) => told.push(progress) });
    expect(told).toEqual([
      { progress: 1, message: "Calls look" },
      { progress: 2, message: "Answers: 6 characters so far" },
    ]);
    await client.close();
  });

  it("are stopped when the client cancels the call", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const client = await connect(revision);
    const leaving = new AbortController();
    const called = client.callTool(call("Hello"), { signal: leaving.signal });
    await expect.poll(async () => (await runs())[0]?.status).toBe("running");
    leaving.abort();
    await expect(called).rejects.toThrow();
    const path = `/api/runs/${(await runs())[0].run_id}/receipt`;
    const receipt = async () => (await service.call("member", "GET", path)).body.receipts?.at(-1);
    await expect.poll(receipt).toMatchObject({ interruption_reason: "caller_left" });
    await client.close();
  });

  it("answer that the turn waits for a person, with the address where the person decides", async () => {
    const erase = { ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }), run: async () => "erased" };
    const looped = new Map([["helper", { name: "Helper", mcp: true, tools: ["erase"] }]]);
    await start({ agents: looped, adapters: [functionTools({ tools: [erase] })] });
    const client = await connect(revision);
    const result = await client.callTool(call("use erase"));
    const [{ run_id: id }] = await runs();
    expect(textOf(result)).toContain(`Run ${id} waits for a person`);
    expect(textOf(result)).toContain(`https://desk.example/#/runs/${id}`);
    await client.close();
  });
});

it("a call says where its turn can be read, if the service stops before the turn has ended", async () => {
  await start();
  service.engine.otherwise(async (_turn, context) => untilStopped(context));
  const client = await connect("2026");
  const called = client.callTool(call("Hello"));
  await expect.poll(async () => (await runs())[0]?.status).toBe("running");
  const [{ run_id: id }] = await runs();
  for (const app of service.apps) app.surface("agent").endEventStreams();
  const result = await called;
  expect([result.isError, textOf(result)]).toEqual([
    true,
    `The service stops before the turn has ended. Read it at /api/runs/${id}/receipt of the agent service`,
  ]);
  await client.close();
});

it("a call is refused while an agent answers 100 callers", async () => {
  await start();
  const gate = Promise.withResolvers<void>();
  service.engine.otherwise(async (_turn, { say }) => {
    await gate.promise;
    await say({ type: "text", delta: "Done." });
  });
  const client = await connect("2026");
  const refused: string[] = [];
  const calls = Array.from({ length: 101 }, async (_, at) => {
    const result = await client.callTool(call(`${at}`));
    if (result.isError) refused.push(textOf(result));
    return result;
  });
  await expect.poll(() => refused).toEqual(["The agent answers too many callers at once"]);
  gate.resolve();
  expect((await Promise.all(calls)).filter(({ isError }) => !isError)).toHaveLength(100);
  await client.close();
});

it("agents as tools need the token of a user", async () => {
  await start();
  await expect(connect("2026", "wrong")).rejects.toThrow();
  const client = await connect("2026", TOKENS.service);
  const result = await client.callTool(call("Hello"));
  expect([result.isError, textOf(result)]).toEqual([true, "This token has no user: use the token of a user"]);
  await client.close();
});
