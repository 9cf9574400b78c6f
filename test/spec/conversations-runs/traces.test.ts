import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { functionTools } from "@portico/adapters/tools/functions";
import { defineAdapter, ports, Secret } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentClient, type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

/** Tools of the test: one answers, one says that it failed. */
const tools = defineAdapter({
  name: "tools/traced",
  port: ports.tools,
  needs: {},
  open: (): ports.ToolSource => ({
    id: "traced",
    list: async () =>
      ["Look", "Miss"].map((id) => ({
        ...{ id, name: id, description: id, inputSchema: { type: "object" } },
        ...{ riskLevel: "low" as const, requiresConfirmation: false, idempotent: true },
      })),
    call: async ({ toolId }) => ({ content: [{ type: "text", text: "Secret result" }], isError: toolId === "Miss" }),
  }),
});

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

interface Entry {
  readonly kind: string;
  readonly name?: string;
  readonly start_ms: number;
  readonly duration_ms: number;
  readonly [fact: string]: unknown;
}

let service: AgentService;
let owner: AgentClient;
let member: AgentClient;
const call = { provider: "main", providerType: "vendor", model: "m-large" };

beforeAll(async () => {
  const scripted = { engine: "scripted", tools: ["Look", "Miss"] };
  service = await startAgentService({
    agents: new Map([
      ["helper", { name: "Helper", ...scripted }],
      ["thinker", { name: "Thinker", engine: "loop", provider: "demo", model: "demo", tools: [] }],
    ]),
    adapters: [tools()],
  });
  [owner, member] = await Promise.all([service.connect("owner"), service.connect("member")]);
  service.engine.on("Look it up", async (turn, { callTool, modelCalled, say, signal }) => {
    modelCalled!({
      ...call,
      durationMs: 0,
      firstTokenMs: 0,
      inputTokens: 12,
      outputTokens: 3,
      cost: 0.5,
      currency: "EUR",
      dropped: ["temperature", "top_p"],
    });
    await callTool({ toolId: "Look", arguments: { query: "Secret argument" } }, signal);
    await callTool({ toolId: "Miss", arguments: {} }, signal);
    modelCalled!({ ...call, durationMs: 0, error: "upstream_timeout" });
    await say({ type: "text", delta: `Secret answer to ${turn.agentId}` });
  });
  service.engine.on("Talk long", async (_turn, { modelCalled }) => {
    for (let at = 1; at <= 300; at++) modelCalled!({ ...call, model: `m-${at} ${"x".repeat(500)}`, durationMs: 0 });
  });
  service.engine.on("Stay", async (_turn, context) => untilStopped(context));
});
afterAll(() => service.close());

async function played(client: AgentClient, prompt: string, options: Record<string, unknown> = {}) {
  const { clientRequestId } = await client.start(prompt, {}, options);
  const { runId, sessionId } = (await client.ended(clientRequestId)).data;
  return { runId, sessionId } as { readonly runId: string; readonly sessionId: string };
}
const traceOf = async (runId: string, query = "", holder: "owner" | "member" | "other" = "owner") =>
  service.call(holder, "GET", `/api/runs/${runId}/trace${query}`);
const entriesOf = async (runId: string): Promise<Entry[]> => (await traceOf(runId)).body.turns.at(-1).trace.entries;

describe("GET /api/runs/:id/trace", () => {
  it("shows how a turn spent its time, without a collector: admission, queue, start, model calls, tools, delivery", async () => {
    const { runId } = await played(owner, "Look it up");
    const { body } = await traceOf(runId);
    const [turn] = body.turns;
    expect(body).toMatchObject({ run_id: runId, total: 1, offset: 0, limit: 5, has_more: false });
    expect(turn).toMatchObject({ receipt_id: expect.any(String), outcome: "success", started_at: expect.any(String) });
    const entries: Entry[] = turn.trace.entries;
    expect(entries.map(({ kind, name }) => (name === undefined ? kind : `${kind} ${name}`))).toEqual([
      "admission",
      "queue",
      "start",
      "model m-large",
      "tool Look",
      "tool Miss",
      "model m-large",
      "delivery",
    ]);
    expect(entries[3]).toMatchObject({
      ...{ provider: "main", first_token_ms: 0, input_tokens: 12, output_tokens: 3 },
      ...{ cost: 0.5, currency: "EUR", dropped: "temperature, top_p" },
    });
    expect(entries[6]).not.toHaveProperty("cost");
    expect(turn.trace.usage).toEqual({ inputTokens: 12, outputTokens: 3, cost: 0.5, currency: "EUR" });
    expect([entries[4]!.error, entries[5]!.error, entries[6]!.error]).toEqual([undefined, "tool_error", "upstream_timeout"]);
  });

  it("times follow each other: from the arrival to the receipt", async () => {
    const { runId } = await played(owner, "Look it up");
    const { trace, completed_at } = (await traceOf(runId)).body.turns[0];
    const entries: Entry[] = trace.entries;
    expect(entries[0]!.start_ms).toBe(0);
    for (const [at, { start_ms, duration_ms }] of entries.entries()) {
      expect([start_ms >= 0, duration_ms >= 0]).toEqual([true, true]);
      if (at > 0) expect(start_ms).toBeGreaterThanOrEqual(entries[at - 1]!.start_ms);
    }
    expect(Date.parse(trace.began_at)).toBeLessThanOrEqual(Date.parse(completed_at));
  });

  it("the built-in engine reports its model calls with the time to the first token", async () => {
    const { runId } = await played(owner, "Hello", { agentId: "thinker" });
    const model = (await entriesOf(runId)).find(({ kind }) => kind === "model");
    expect(model).toMatchObject({ name: "demo", provider: "demo", first_token_ms: expect.any(Number) });
    expect(model!.first_token_ms).toBeLessThanOrEqual(model!.duration_ms);
  });

  it("names what was left out of the request of a model call, because the model does not take it", async () => {
    await using upstream = await startFakeUpstream();
    const models = [{ id: "echo-large", images: false as const }];
    await using own = await startAgentService({
      agents: new Map([["blind", { name: "Blind", provider: "main", model: "echo-large", tools: ["See"] }]]),
      adapters: [
        messagesHttp({
          id: "main",
          type: "vendor",
          baseUrl: upstream.baseUrl,
          credential: new Secret("sk-key-0123456789"),
          models,
        }),
        functionTools({
          tools: [
            {
              ...{
                name: "See",
                description: "Sees",
                inputSchema: { type: "object" },
                riskLevel: "low",
                requiresConfirmation: false,
              },
              run: async () => ({ content: [{ type: "image", mimeType: "image/png", data: PNG }], isError: false }),
            },
          ],
        }),
        loopAgentEngine({}),
      ],
    });
    const client = await own.connect("owner");
    const { clientRequestId } = await client.start("please See", {}, { agentId: "blind" });
    const { runId } = (await client.ended(clientRequestId)).data;
    const { entries } = (await own.call("owner", "GET", `/api/runs/${runId}/trace`)).body.turns[0].trace;
    expect(entries.filter(({ kind }: Entry) => kind === "model").map(({ dropped }: Entry) => dropped)).toEqual([
      undefined,
      "messages.content.image",
    ]);
  });

  it("contains no prompt, argument, result or answer", async () => {
    const { runId } = await played(owner, "Look it up");
    expect(JSON.stringify((await traceOf(runId)).body)).not.toMatch(/Secret|Look it up/);
  });

  it("is bounded: of many entries the first and the last are kept, and the others counted", async () => {
    const { runId } = await played(owner, "Talk long");
    const { trace } = (await traceOf(runId)).body.turns[0];
    expect(trace.entries).toHaveLength(200);
    expect(trace.entries.length + trace.left_out).toBe(304);
    expect(trace.entries[4].name).toMatch(/^m-2 x+$/);
    expect(trace.entries.at(-2).name).toMatch(/^m-300 x+$/);
    expect(JSON.stringify(trace).length).toBeLessThan(60_000);
  });

  it("shows failed and interrupted turns too, and pages back from the newest", async () => {
    const { clientRequestId } = await owner.start("Stay");
    const { sessionId, runId } = await owner.event("query:started", clientRequestId);
    owner.socket.emit("query:abort", { sessionId });
    await owner.ended(clientRequestId);
    const followed = await owner.followUp(sessionId, "Look it up");
    await owner.ended(followed.clientRequestId);
    const { body } = await traceOf(runId);
    expect(body.turns.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["partial", "success"]);
    expect(body.turns[0].trace.entries.map(({ kind }: Entry) => kind)).toEqual(["admission", "queue", "start", "delivery"]);
    const newest = (await traceOf(runId, "?limit=1")).body;
    expect([newest.turns, newest.has_more]).toEqual([[body.turns[1]], true]);
    const older = (await traceOf(runId, "?limit=1&offset=1")).body;
    expect([older.turns, older.has_more]).toEqual([[body.turns[0]], false]);
    expect((await traceOf(runId, "?offset=2")).body).toMatchObject({ turns: [], has_more: false });
    for (const query of ["?limit=0", "?limit=x", "?offset=-1"])
      expect(await traceOf(runId, query)).toMatchObject({ status: 400, body: { code: "invalid_pagination" } });
  });

  it("background turns have one as well", async () => {
    const { runId } = await service.app.port(ports.backgroundTurns).start({
      agentId: "helper",
      userId: "owner",
      prompt: "Look it up",
      toolIds: ["Look", "Miss"],
      maxTurns: 3,
      origin: { origin: "test", displayName: "Test" },
    });
    await expect.poll(async () => (await traceOf(runId)).body.turns?.length).toBe(1);
    expect((await entriesOf(runId)).map(({ kind }) => kind)).toEqual([
      "admission",
      "queue",
      "start",
      "model",
      "tool",
      "tool",
      "model",
      "delivery",
    ]);
  });

  it("receipts stay as they are, without the trace (2.12)", async () => {
    const { runId } = await played(owner, "Look it up");
    const { receipts } = (await service.call("owner", "GET", `/api/runs/${runId}/receipt`)).body;
    expect(receipts[0]).not.toHaveProperty("trace");
  });

  it("the owner sees those of all users, a member its own, others 404", async () => {
    const { runId } = await played(member, "Look it up");
    expect((await traceOf(runId, "", "owner")).body.turns).toHaveLength(1);
    expect((await traceOf(runId, "", "member")).body.turns).toHaveLength(1);
    expect(await traceOf(runId, "", "other")).toMatchObject({ status: 404, body: { code: "run_not_found" } });
    expect((await traceOf("run_nothing")).status).toBe(404);
  });
});
