import { functionTools } from "@portico/adapters/tools/functions";
import type { App } from "@portico/core";
import { afterEach, expect, it } from "vitest";
import { ASKED_UNREAD_CHARACTERS } from "../../../plugins/src/conversations-runs/limits.ts";
import { type AskedEvent, type Asking, askedTurnsPort } from "../../../plugins/src/conversations-runs/runtime/asked-turns.ts";
import { type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let service: AgentService;
afterEach(() => service.close());
const start = async (options?: AgentServiceOptions) => void (service = await startAgentService(options));

const asking = (prompt: string, more: Partial<Asking> = {}): Asking => ({
  ...{ agentId: "helper", userId: "member", prompt, history: [], input: [{ type: "text", text: prompt }] },
  origin: { origin: "test", displayName: "a test" },
  ...more,
});
const ask = (
  prompt: string,
  { from = service.app, signal = AbortSignal.timeout(60_000) }: { from?: App; signal?: AbortSignal } = {},
) => from.port(askedTurnsPort).ask(asking(prompt), signal);
const runOf = async (runId: string) => (await service.call("owner", "GET", `/api/runs/${runId}`)).body;
const runIdOf = (event: AskedEvent | void) => (event?.type === "accepted" ? event.runId : "");

const erase = { ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }), run: async () => "erased" };

it("a caller that stays while its turn waits for a person is told everything, wherever the turn goes on", async () => {
  await start({
    agents: new Map([["helper", { name: "Helper", tools: ["erase"] }]]),
    adapters: [functionTools({ tools: [erase] })],
  });
  // Each process of a cluster asks, and another one may hear the decision.
  const told = service.apps.map(async (from) => {
    const types: string[] = [];
    let runId = "";
    for await (const event of ask("use erase", { from })) {
      types.push(event.type === "message" ? event.message.type : event.type);
      runId ||= runIdOf(event);
      if (event.type === "waiting") {
        const [call] = event.calls;
        expect(call).toMatchObject({ toolId: "erase", name: "erase", expiresAt: expect.any(String) });
        const path = `/api/runs/${runId}/approvals/${call!.callId}`;
        expect((await service.call("member", "POST", path, { decision: "approve" })).status).toBe(200);
      }
      if (event.type === "ended")
        expect(event.end).toMatchObject({ runId, status: "completed", output: expect.stringContaining("erased") });
    }
    return types.filter((type, at) => type !== types[at - 1]);
  });
  for (const types of await Promise.all(told))
    expect(types).toEqual(["accepted", "tool_call", "approval", "waiting", "approval", "tool_result", "text", "ended"]);
});

it("a caller that leaves while its turn waits does not stop it, and one that leaves earlier or later does", async () => {
  await start({
    agents: new Map([["helper", { name: "Helper", tools: ["erase"] }]]),
    adapters: [functionTools({ tools: [erase] })],
  });
  const asked = ask("use erase");
  const runId = runIdOf((await asked.next()).value);
  for await (const event of asked) if (event.type === "waiting") break;
  expect((await runOf(runId)).approvals).toHaveLength(1);
  const left = new AbortController();
  const other = ask("use erase", { signal: left.signal });
  const otherId = runIdOf((await other.next()).value);
  left.abort(new Error("left"));
  await expect(other.next()).rejects.toThrow("left");
  await expect.poll(async () => (await runOf(otherId)).interruption_reason).toBe("caller_left");
  expect((await runOf(runId)).status).toBe("running");
});

it("a caller that does not read for long stops its turn, and memory holds no more than a bound", async () => {
  await start();
  const said = createGate();
  service.engine.otherwise(async (_turn, context) => {
    const delta = "x".repeat(64 * 1024);
    for (let at = 0; at <= 2 * ASKED_UNREAD_CHARACTERS; at += delta.length) await context.say({ type: "text", delta });
    said.open();
    return untilStopped(context);
  });
  const asked = ask("much");
  const runId = runIdOf((await asked.next()).value);
  // It has to read once before it is told.
  await asked.next();
  await said.opened;
  await expect(
    (async () => {
      for await (const _event of asked);
    })(),
  ).rejects.toMatchObject({ name: "TurnFailed", code: "caller_too_slow" });
  await expect.poll(async () => (await runOf(runId)).interruption_reason).toBe("caller_left");
});

it("an agent that does not exist is not asked", async () => {
  await start();
  const asked = service.app.port(askedTurnsPort).ask(asking("x", { agentId: "nobody" }), AbortSignal.timeout(60_000));
  await expect(asked.next()).rejects.toMatchObject({ code: "unknown_agent" });
});
