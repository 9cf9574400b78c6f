import { echoAgentEngine } from "@portico/adapters/agent-engines/echo";
import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { demo } from "@portico/adapters/models/demo";
import { loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { memoryStore } from "@portico/adapters/stores/memory";
import { functionTools } from "@portico/adapters/tools/functions";
import { type Adapter, createApp, ports, Secret } from "@portico/core";
import { agentTurns } from "@portico/plugins/conversations-runs/agent-turns";
import { workflowService } from "@portico/plugins/workflow-service";
import { expect, it } from "vitest";
import { receiptStream } from "../../../plugins/src/conversations-runs/runs/receipts.ts";

const erase = {
  ...{ name: "erase", description: "Erases", inputSchema: { type: "object" } },
  riskLevel: "high",
  requiresConfirmation: true,
  run: async () => "erased",
} as const;

const definition = `
nodes:
  greet: { type: agent, with: { agent: helper, prompt: "Hello" } }
outputs:
  said: "\${{ nodes.greet.output.text }}"
`;

const open = (...adapters: readonly Adapter[]) =>
  createApp({
    name: "greeter",
    adapters: [
      ...memoryStore(),
      memoryDocuments({ id: "workflows", texts: { "greet.yaml": definition } }),
      memoryAgents({
        agents: new Map<string, object>([
          ["helper", { name: "Helper", engine: "echo" }],
          ["looper", { name: "Looper", tools: ["erase"], toolPolicy: { background: { tools: { erase: "ask" } } } }],
        ]),
      }),
      functionTools({ tools: [erase] }),
      echoAgentEngine({}),
      loopAgentEngine({}),
      demo({}),
      tokenIdentity({ tokens: [{ token: new Secret("t"), userId: "ada", role: "owner" }] }),
      ...adapters,
    ],
    plugins: [workflowService({ token: new Secret("w") }), agentTurns({})],
  });

it("workflows give turns to agents in an app without users, and without an adapter of realtime", async () => {
  await using app = await open();
  const call = async (path: string, method = "GET") => {
    const headers = { "x-workflow-service-token": "w" };
    const answer = await app.surface("workflow").fetch(new Request(`http://w${path}`, { method, headers }));
    return (await answer.json()) as Record<string, unknown>;
  };
  const { runId } = await call("/api/workflow/webhook?id=greet", "POST");
  const run = () => call(`/api/workflow/greet/runs/${String(runId)}`);
  await expect.poll(async () => (await run())["status"], { timeout: 30_000 }).toBe("completed");
  expect(await run()).toMatchObject({ finalOutputs: { said: "Hello" } });
  expect(app.surfaces).toEqual(["workflow"]);
});

it("an adapter of realtime that the app lists wins over the one that the area brings", async () => {
  await using app = await open(loopbackRealtime({}));
  const handlers = { admit: async () => undefined, joined() {}, receive() {}, gone() {} };
  // The loopback knows the path that the area serves.
  expect(() => app.port(ports.realtime).serve({ surface: "agent", path: "/socket.io/", ...handlers })).toThrow(/\/socket\.io\//);
});

it("a call that waits elsewhere is refused there, and says why: no call of the app can decide it", async () => {
  await using app = await open();
  const turns = app.port(ports.backgroundTurns);
  const { runId } = await turns.start({
    ...{ agentId: "looper", userId: "ada", prompt: "use erase", key: "once" },
    origin: { origin: "workflow", displayName: "erases" },
  });
  await expect
    .poll(() => turns.find("once"), { timeout: 30_000 })
    .toEqual({ runId, isOpen: false, end: { status: "completed", at: expect.any(Number) } });
  const [receipt] = (await Array.fromAsync(app.port(ports.log).read(receiptStream(runId)))) as any[];
  expect(receipt.entry.tool_calls).toMatchObject([{ tool_id: "erase", is_error: true }]);
  expect(receipt.entry.output).toContain("which no person can give in this service");
});
