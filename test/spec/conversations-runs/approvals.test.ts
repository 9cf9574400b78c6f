import { createManualClock } from "@portico/adapters/clock/manual";
import { functionTools } from "@portico/adapters/tools/functions";
import { defineAdapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { agentRuntimePort } from "../../../plugins/src/conversations-runs/runtime/agent-runtime.ts";
import {
  type AgentClient,
  type AgentService,
  type AgentServiceOptions,
  type Holder,
  startAgentService,
} from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

/** What the tools did, in order. */
let done: (readonly [string, unknown])[];
const path = { type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false };
const tool = (name: string, more: Partial<ports.ToolDefinition> = {}) => ({
  ...toolOf(name, more),
  inputSchema: path,
  run: async (args: unknown) => (done.push([name, args]), `${name} is done`),
});
const erase = tool("erase", { riskLevel: "critical", requiresConfirmation: true });
const shred = tool("shred", { riskLevel: "high", requiresConfirmation: true, idempotent: true });
const mend = tool("mend", { riskLevel: "high", requiresConfirmation: true });
const look = tool("look", { idempotent: true });
const touch = tool("touch");
const agent = (toolPolicy?: ports.ToolPolicy) => ({
  name: "Looper",
  tools: ["erase", "shred", "mend", "look", "touch", "SendUserMessage"],
  ...(toolPolicy && { toolPolicy }),
});
const LISTENER = "client-0123456789abcdef";

/** Not only letters: stores must give it back as it is. */
const TEXT = '😀 \u0000 " \\ é'.repeat(3);
/** An engine that makes one call, and waits for its approval if it needs one. */
const pausingEngine = (call: ports.PausedCall) =>
  defineAdapter({
    name: "agent-engines/pausing",
    port: ports.agentEngines,
    needs: {},
    open: (): ports.AgentEngine => ({
      id: "pausing",
      canPause: true,
      async run({ progress }, { needsApproval, callTool, signal }) {
        if (!progress && (await needsApproval!(call))) throw new ports.TurnPaused([call], { text: TEXT });
        const result = await callTool(call, signal);
        const output = `${textOf(result)} after ${(progress as { text?: string } | undefined)?.text}`;
        return { output, messages: [], toolCalls: [], end: "completed" };
      },
    }),
  })();

let folder: ReturnType<typeof temporaryFolder>;
let service: AgentService;
let client: AgentClient;
const start = async ({ policy, ...options }: AgentServiceOptions & { readonly policy?: ports.ToolPolicy } = {}) => {
  service = await startAgentService({
    agents: new Map([["looper", agent(policy)]]),
    adapters: [functionTools({ tools: [erase, shred, mend, look, touch] })],
    dataDir: folder.path,
    ...options,
  });
  client = await service.connect("member", { clientInstanceId: LISTENER });
};
beforeEach(() => {
  done = [];
  folder = temporaryFolder();
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

const messages = (clientRequestId: string, type: string, from = client) =>
  from.of(clientRequestId).flatMap(({ data: { message } }) => (message?.type === type ? [message.content] : []));
const seqsOf = (heard: readonly { readonly data: any }[]) => heard.flatMap(({ data: { message } }) => message?.seq ?? []);
/** Asks the agent, and waits until this many calls wait. The demo model calls the tools that the prompt names. */
const asked = async (prompt: string, count = 1) => {
  const { clientRequestId } = await client.start(prompt, {}, { agentId: "looper" });
  const { runId, sessionId, conversationId } = await client.event("query:started", clientRequestId);
  await expect.poll(() => messages(clientRequestId, "approval")).toHaveLength(count);
  const calls = messages(clientRequestId, "approval");
  return { clientRequestId, runId, sessionId, conversationId, calls, call: calls[0] };
};
const decide = (runId: string, callId: string, body: object, holder: Holder = "member") =>
  service.call(holder, "POST", `/api/runs/${runId}/approvals/${encodeURIComponent(callId)}`, body);
const runOf = async (runId: string) => (await service.call("owner", "GET", `/api/runs/${runId}`)).body;
const receiptOf = async (runId: string) =>
  (await service.call("member", "GET", `/api/runs/${runId}/receipt`)).body.receipts.at(-1);
const isAtRest = (runId: string) => expect.poll(async () => (await runOf(runId)).status).toMatch(/idle|completed|failed/);
const approvalsOf = async (holder: Holder) => (await service.call(holder, "GET", "/api/approvals")).body.approvals;
/** The results that the model was given. */
const resultsOf = (clientRequestId: string) => messages(clientRequestId, "tool_result").map(({ result }) => result);
const textOf = ({ content }: any) => content.map(({ text }: any) => text).join("\n");

describe("a call that needs an approval makes the turn wait (open points 14)", () => {
  it("the run is running and names the call, and the tool runs once it is approved", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    expect(call).toEqual({
      ...{ callId: expect.any(String), toolId: "erase", name: "erase", status: "waiting", riskLevel: "critical" },
      arguments: { path: expect.any(String) },
      expiresAt: expect.any(String),
    });
    expect(await runOf(runId)).toMatchObject({
      status: "running",
      approvals: [{ call_id: call.callId, tool_id: "erase", risk_level: "critical" }],
    });
    expect(done).toEqual([]);
    const decision = await decide(runId, call.callId, { decision: "approve" });
    expect(decision).toMatchObject({ status: 200, body: { runId, callId: call.callId, decision: "approve" } });
    expect((await client.ended(clientRequestId)).data.terminal).toEqual({ status: "completed", runId });
    expect(done).toEqual([["erase", call.arguments]]);
    expect(messages(clientRequestId, "approval")[1]).toMatchObject({
      callId: call.callId,
      status: "approved",
      decidedBy: "member",
    });
    const run = await runOf(runId);
    expect([run.status, run.approvals]).toEqual(["idle", undefined]);
    const seqs = seqsOf(client.of(clientRequestId));
    expect(seqs).toEqual(seqs.map((_seq, at) => at + 1));
    expect(await receiptOf(runId)).toMatchObject({
      outcome: { status: "success" },
      tool_calls: [{ id: call.callId, tool_id: "erase", is_error: false }],
      usage: { modelCalls: 2 },
    });
  });

  it("with several calls, those without a need run, and the turn goes on when all others are decided", async () => {
    await start();
    const { clientRequestId, runId, calls } = await asked("use erase and shred and look", 2);
    expect(done).toEqual([["look", { path: expect.any(String) }]]);
    expect((await decide(runId, calls[0].callId, { decision: "approve" })).status).toBe(200);
    expect((await runOf(runId)).approvals).toMatchObject([{ call_id: calls[1].callId }]);
    expect(done).toHaveLength(1);
    expect((await decide(runId, calls[1].callId, { decision: "reject" })).status).toBe(200);
    await client.ended(clientRequestId);
    expect(done.map(([name]) => name)).toEqual(["look", "erase"]);
    expect(messages(clientRequestId, "tool_call")).toHaveLength(3);
    expect((await receiptOf(runId)).tool_calls.map(({ tool_id, is_error }: any) => [tool_id, is_error])).toEqual([
      ["erase", false],
      ["shred", true],
      ["look", false],
    ]);
  });

  it("a later call of its lane does not overtake it", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase, then touch");
    expect(done).toEqual([]);
    await decide(runId, call.callId, { decision: "approve" });
    await client.ended(clientRequestId);
    expect(done.map(([name]) => name)).toEqual(["erase", "touch"]);
  });

  it.each([
    ["changes", { decision: "approve", arguments: { path: "other" }, comment: "This one." }, "approved", "other"],
    ["rejects", { decision: "reject", comment: "Never." }, "rejected", undefined],
  ] as const)("receipt, conversation and trace show what a person %s", async (_how, body, status, executed) => {
    await start();
    const { clientRequestId, runId, conversationId, call } = await asked("use erase");
    await decide(runId, call.callId, body, "owner");
    await client.ended(clientRequestId);
    const told = messages(clientRequestId, "approval")[1];
    expect(told.decidedAt).toMatch(/^\d{4}-.*Z$/);
    const { tool_calls } = await receiptOf(runId);
    expect(tool_calls).toEqual([
      {
        ...{ id: call.callId, tool_id: "erase", name: "erase", is_error: status === "rejected" },
        arguments: executed === undefined ? call.arguments : { path: executed },
        ...(executed !== undefined && { proposed_arguments: call.arguments }),
        decision: { status, user_id: "owner", at: told.decidedAt, comment: body.comment },
      },
    ]);
    const { body: page } = await service.call("member", "GET", `/api/conversations/${conversationId}/messages`);
    expect(page.messages.flatMap(({ parts }: any) => parts).find(({ type }: any) => type === "tool_call")).toMatchObject({
      // What the model reads again in later turns.
      arguments: call.arguments,
      decision: {
        ...{ status, decidedBy: "owner", decidedAt: told.decidedAt, comment: body.comment },
        ...(executed !== undefined && { arguments: { path: executed } }),
      },
    });
    const { turns } = (await service.call("owner", "GET", `/api/runs/${runId}/trace`)).body;
    expect(turns[0].trace.entries.filter(({ kind }: any) => kind === "tool")).toMatchObject([
      {
        ...{ name: "erase", decision: status, decided_by: "owner", decided_at: told.decidedAt },
        ...(executed !== undefined && { edited: true }),
      },
    ]);
  });

  it("a turn that breaks off after a decision keeps it in its receipt", async () => {
    await start();
    const { clientRequestId, sessionId, runId, calls } = await asked("use erase and shred", 2);
    await decide(runId, calls[0].callId, { decision: "approve", arguments: { path: "other" } });
    client.socket.emit("query:abort", { sessionId, clientRequestId });
    await client.ended(clientRequestId);
    const [first, second] = (await receiptOf(runId)).tool_calls;
    expect([done, first.is_error]).toEqual([[], true]);
    expect(second).toMatchObject({ tool_id: "shred", is_error: true });
  });

  it.each([
    [0, 1],
    [1, 0],
  ])(
    "two calls of one lane are shown together, decided in any order (%i, %i), and run in the model's order",
    async (...order) => {
      await start();
      const { clientRequestId, runId, calls } = await asked("use erase, then mend, then touch", 2);
      expect(calls.map(({ toolId }: any) => toolId)).toEqual(["erase", "mend"]);
      for (const at of order) {
        expect(done).toEqual([]);
        await decide(runId, calls[at].callId, { decision: "approve" });
      }
      await client.ended(clientRequestId);
      expect(done.map(([name]) => name)).toEqual(["erase", "mend", "touch"]);
    },
  );

  it("the next turn of the session comes after it, and other sessions go on", async () => {
    await start();
    const { clientRequestId, runId, sessionId, call } = await asked("use erase");
    const next = await client.followUp(sessionId, "hello");
    const other = await client.start("hello", {}, { agentId: "looper" });
    await client.ended(other.clientRequestId);
    expect(client.of(next.clientRequestId).filter(({ event }) => event === "query:started")).toEqual([]);
    await decide(runId, call.callId, { decision: "approve" });
    await client.ended(clientRequestId);
    await client.ended(next.clientRequestId);
  });

  it("it waits on over a restart, and its client hears it to the end", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    await service.close();
    await start();
    expect(await runOf(runId)).toMatchObject({ status: "running", approvals: [{ call_id: call.callId }] });
    expect(await approvalsOf("member")).toMatchObject([{ runId, callId: call.callId }]);
    expect((await decide(runId, call.callId, { decision: "approve" })).status).toBe(200);
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("completed");
    expect(done).toEqual([["erase", call.arguments]]);
    const seqs = seqsOf(client.of(clientRequestId));
    expect(seqs).toEqual(seqs.map((_seq, at) => at + 1));
    expect((await receiptOf(runId)).usage).toMatchObject({ modelCalls: 2 });
  });

  it("a client that comes back meanwhile hears the rest", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    const before = [...client.of(clientRequestId)];
    client.leave();
    const back = await service.connect("member", { clientInstanceId: LISTENER });
    await decide(runId, call.callId, { decision: "approve" });
    await back.ended(clientRequestId);
    // Without a place, another process of a cluster sends again what an earlier one sent.
    const seqs = [...new Set(seqsOf([...before, ...back.of(clientRequestId)]))];
    expect(seqs).toEqual(seqs.map((_seq, at) => at + 1));
    expect(messages(clientRequestId, "approval", back).at(-1)).toMatchObject({ status: "approved" });
  });

  it("its trace shows the wait", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    await decide(runId, call.callId, { decision: "approve" });
    await client.ended(clientRequestId);
    const { body } = await service.call("member", "GET", `/api/runs/${runId}/trace`);
    const kinds: string[] = body.turns[0].trace.entries.map(({ kind }: any) => kind);
    expect(kinds.filter((kind) => ["model", "wait", "tool"].includes(kind))).toEqual(["model", "wait", "tool", "model"]);
  });
});

describe("a decision", () => {
  it("counts once: every other one is 409", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    const answers = await Promise.all([
      decide(runId, call.callId, { decision: "approve" }),
      decide(runId, call.callId, { decision: "reject" }, "owner"),
      decide(runId, call.callId, { decision: "approve" }),
    ]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
    await client.ended(clientRequestId);
    expect((await decide(runId, call.callId, { decision: "approve" })).status).toBe(409);
  });

  it("is for the owner and the run's user: to others, the call is missing", async () => {
    await start();
    const { runId, call } = await asked("use erase");
    for (const holder of ["other", "service"] as const) {
      expect((await decide(runId, call.callId, { decision: "approve" }, holder)).status).toBe(404);
      expect(await approvalsOf(holder)).toEqual([]);
    }
    expect((await decide(runId, "nothing", { decision: "approve" })).status).toBe(404);
    expect((await decide("run_nothing", call.callId, { decision: "approve" })).status).toBe(404);
    expect((await service.call(undefined, "POST", `/api/runs/${runId}/approvals/x`, { decision: "approve" })).status).toBe(401);
    for (const holder of ["member", "owner"] as const) {
      expect(await approvalsOf(holder)).toEqual([
        expect.objectContaining({ runId, callId: call.callId, toolId: "erase", arguments: call.arguments, userId: "member" }),
      ]);
    }
    expect((await decide(runId, call.callId, { decision: "approve" }, "owner")).status).toBe(200);
    expect(await approvalsOf("owner")).toEqual([]);
  });

  it("that rejects is told to the model, with its comment, and the tool does not run", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    await decide(runId, call.callId, { decision: "reject", comment: "Not this file" });
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("completed");
    const [result] = resultsOf(clientRequestId);
    expect([result.isError, textOf(result)]).toEqual([true, "A person rejected this call: Not this file"]);
    expect(done).toEqual([]);
  });

  it("may change the arguments, which must fit the tool's schema; the model is told", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    const wrong = await decide(runId, call.callId, { decision: "approve", arguments: { path: 1 } });
    expect(wrong).toMatchObject({ status: 400 });
    await decide(runId, call.callId, { decision: "approve", arguments: { path: "other.txt" } });
    await client.ended(clientRequestId);
    expect(done).toEqual([["erase", { path: "other.txt" }]]);
    expect(textOf(resultsOf(clientRequestId)[0])).toMatch(/other arguments: \{"path":"other.txt"\}\nerase is done/);
  });

  it.each([
    {},
    { decision: "maybe" },
    { decision: "reject", arguments: {} },
    { decision: "reject", standing: true },
    { decision: "approve", arguments: {}, standing: true },
    { decision: "approve", more: 1 },
    { decision: "approve", comment: "x".repeat(5000) },
  ])("%j is 400", async (body) => {
    await start();
    expect((await decide("run_x", "y", body)).status).toBe(400);
  });
});

describe("a turn that waits ends without a decision", () => {
  it("when it is aborted: interrupted, and the call cannot be decided any more", async () => {
    await start();
    const { clientRequestId, runId, sessionId, conversationId, call } = await asked("use erase");
    client.socket.emit("query:abort", { sessionId, clientRequestId });
    const { data } = await client.ended(clientRequestId);
    expect(data.terminal).toMatchObject({ status: "interrupted", reason: "user_stop" });
    expect((await decide(runId, call.callId, { decision: "approve" })).status).toBe(409);
    const run = await runOf(runId);
    expect([run.status, run.approvals]).toEqual(["idle", undefined]);
    expect(await approvalsOf("owner")).toEqual([]);
    expect(done).toEqual([]);
    // The model of the next turn is told that the effect is known.
    expect(textOf(resultsOf(clientRequestId)[0])).toMatch(/stopped before .* It was not run/);
    const { body } = await service.call("member", "GET", `/api/conversations/${conversationId}/messages`);
    expect(JSON.stringify(body.messages)).toMatch(/It was not run/);
    expect(JSON.stringify(body.messages)).not.toMatch(/effect is unknown/);
  });

  it("when it is aborted just as it begins to wait", async () => {
    await start();
    const log = service.app.port(ports.log);
    const append = log.appendAll.bind(log);
    const stopTurn = service.app.port(agentRuntimePort).stopTurn;
    log.appendAll = async (entries, options) => {
      const wait = options?.records?.find(({ collection }) => collection === "turn-waits");
      const { sessionId, clientRequestId } = ((wait as { value?: object } | undefined)?.value ?? {}) as Record<string, string>;
      if (wait) await stopTurn({ userId: "member", sessionId: sessionId!, clientRequestId: clientRequestId! });
      return append(entries, options);
    };
    const { clientRequestId } = await client.start("use erase", {}, { agentId: "looper" });
    expect((await client.ended(clientRequestId)).data.terminal).toMatchObject({ status: "interrupted", reason: "user_stop" });
  });

  it("when an abort names its session alone", async () => {
    await start();
    const { clientRequestId, sessionId } = await asked("use erase");
    client.socket.emit("query:abort", { sessionId });
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("interrupted");
  });

  it("when its conversation is cleared", async () => {
    await start();
    const { clientRequestId, runId, conversationId } = await asked("use erase");
    expect((await service.call("member", "POST", `/api/conversations/${conversationId}/clear`)).status).toBe(200);
    expect((await client.ended(clientRequestId)).data.terminal.reason).toBe("conversation_cleared");
    expect(await runOf(runId)).toMatchObject({ status: "completed", cleared: true });
  });

  it("when all turns of its user are stopped", async () => {
    await start();
    const { clientRequestId } = await asked("use erase");
    expect((await service.call("owner", "POST", "/api/users/member/stop-turns")).body.stopped).toBe(1);
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("interrupted");
  });

  it("when the time for the decision ends: the model is told, and the turn goes on", async () => {
    await start({ policy: { approvalTimeout: "1s" } });
    const { clientRequestId, runId, call } = await asked("use erase");
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("completed");
    expect(textOf(resultsOf(clientRequestId)[0])).toMatch(/No person decided/);
    expect((await decide(runId, call.callId, { decision: "approve" })).status).toBe(409);
    expect(done).toEqual([]);
  }, 60_000);

  it("a decision after the call's time has ended is 409, also before the turn goes on", async () => {
    await start({ policy: { approvalTimeout: "1s" } });
    const { runId, call } = await asked("use erase");
    const waits = service.app.port(agentRuntimePort).waits;
    const at = Date.parse(call.expiresAt);
    const commit = () => Promise.reject(new Error("It is decided"));
    expect(await waits.decide(runId, call.callId, { decision: "approve", at }, { commit })).toBe(false);
    await expect(waits.decide(runId, call.callId, { decision: "approve", at: at - 1 }, { commit })).rejects.toThrow("decided");
  });

  it("the time of its wait does not count for its time limit, and what it executed before does", async () => {
    const clock = createManualClock();
    let takesMs = 50_000;
    const slow = tool("slow", { idempotent: true });
    const run = async () => (await clock.advance(takesMs), "done");
    const tools = [
      { ...slow, run },
      { ...erase, run },
    ];
    const definition = { ...agent({ approvalTimeout: "12h" }), tools: ["erase", "slow"] };
    await start({
      ...{ clock, adapters: [functionTools({ tools })], agents: new Map([["looper", definition]]) },
      runtime: { limits: { agent: { turnSeconds: 60 } } },
    });
    const reasons = [];
    for (takesMs of [25_000, 50_000]) {
      const { clientRequestId, runId, call } = await asked("use erase and slow");
      await clock.jump(60 * 60_000);
      expect((await decide(runId, call.callId, { decision: "approve" })).status).toBe(200);
      reasons.push((await client.ended(clientRequestId)).data.terminal.reason);
    }
    expect(reasons).toEqual([undefined, "time_limit"]);
  });

  it("a decision after a stop is 409, also before the turn goes on", async () => {
    await start();
    const { runId, call } = await asked("use erase");
    const { waits } = service.app.port(agentRuntimePort);
    const [approval] = (await waits.open(undefined, 1, undefined)).items;
    // As a process that dies before it wakes the turn.
    await waits.write(await waits.stop(approval!.turnId, 0));
    expect((await decide(runId, call.callId, { decision: "approve" })).status).toBe(409);
  });

  it("goes on when the process that decided died before it woke the turn", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    const { waits } = service.app.port(agentRuntimePort);
    const commit = ({ writes }: { writes: readonly ports.Write[] }) => waits.write(writes);
    await waits.decide(runId, call.callId, { decision: "approve", at: Date.now() - 60_000 }, { commit });
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("completed");
    expect(done).toHaveLength(1);
  });
});

describe("a turn that cannot go on after its wait", () => {
  /** Breaks the next reading of a turn's transcript. */
  const breakTranscript = () => {
    const log = service.app.port(ports.log);
    const read = log.read.bind(log);
    log.read = (stream, options) => {
      if (!stream.startsWith("turns/")) return read(stream, options);
      log.read = read;
      throw new Error("The transcript cannot be read");
    };
  };
  const failure = { status: "failed", failure: { code: "internal_error" } };

  it("is failed, and so is its run: nothing stays open", async () => {
    await start();
    const { clientRequestId, runId, call, sessionId } = await asked("use erase");
    breakTranscript();
    await decide(runId, call.callId, { decision: "approve" });
    expect((await client.ended(clientRequestId)).data).toMatchObject({ code: "internal_error" });
    expect(await runOf(runId)).toMatchObject(failure);
    expect((await runOf(runId)).approvals).toBeUndefined();
    expect(done).toEqual([]);
    const next = await client.followUp(sessionId, "hello");
    expect((await client.ended(next.clientRequestId)).data.terminal.status).toBe("completed");
  });

  it("is failed in the background, too", async () => {
    await start({ policy: { background: { tools: { erase: "ask" } } } });
    const { runId } = await service.app.port(ports.backgroundTurns).start({
      ...{ agentId: "looper", userId: "member", prompt: "use erase", maxTurns: 5 },
      origin: { origin: "webhook", displayName: "event" },
    });
    await expect.poll(async () => (await runOf(runId)).approvals).toHaveLength(1);
    breakTranscript();
    await decide(runId, (await runOf(runId)).approvals[0].call_id, { decision: "approve" });
    await isAtRest(runId);
    expect(await runOf(runId)).toMatchObject(failure);
    expect(done).toEqual([]);
  });
});

describe("the policy of tools", () => {
  it.each<[string, ports.ToolPolicy | undefined, ports.ToolRules, string, string]>([
    ["the agent allows a tool that requires confirmation", { tools: { erase: "allow" } }, {}, "erase", "runs"],
    ["the agent allows its risk level", { riskLevels: { critical: "allow" } }, {}, "erase", "runs"],
    ["the agent asks for a risk level", { riskLevels: { low: "ask" } }, {}, "look", "waits"],
    ["the tool's own rule comes first", { riskLevels: { low: "ask" }, tools: { look: "allow" } }, {}, "look", "runs"],
    ["the configuration asks", undefined, { tools: { look: "ask" } }, "look", "waits"],
    ["the configuration allows", undefined, { riskLevels: { critical: "allow" } }, "erase", "runs"],
    ["the agent is stricter than the configuration", { tools: { look: "ask" } }, { tools: { look: "allow" } }, "look", "waits"],
    ["the agent is laxer than the configuration", { tools: { look: "allow" } }, { tools: { look: "ask" } }, "look", "waits"],
    ["the agent denies", { tools: { look: "deny" } }, {}, "look", "is not offered"],
    ["the configuration denies", { tools: { look: "allow" } }, { riskLevels: { low: "deny" } }, "look", "is not offered"],
  ])("%s", async (_what, policy, toolPolicy, toolId, outcome) => {
    await start({ ...(policy && { policy }), runtime: { toolPolicy } });
    const { clientRequestId } = await client.start(`use ${toolId}`, {}, { agentId: "looper" });
    const { runId } = await client.event("query:started", clientRequestId);
    if (outcome === "waits") return void (await expect.poll(async () => (await runOf(runId)).approvals).toHaveLength(1));
    await client.ended(clientRequestId);
    expect([messages(clientRequestId, "tool_call").length, done.length]).toEqual(outcome === "runs" ? [1, 1] : [0, 0]);
  });
});

describe("a standing consent", () => {
  const changed = () => functionTools({ tools: [{ ...erase, description: "Erases more" }, shred, look, touch] });

  it("lets later calls run without asking, until the tool has changed or the consent is revoked", async () => {
    await start();
    const first = await asked("use erase");
    await decide(first.runId, first.call.callId, { decision: "approve", standing: true });
    await client.ended(first.clientRequestId);
    const second = await client.start("use erase", {}, { agentId: "looper" });
    await client.ended(second.clientRequestId);
    expect(done).toHaveLength(2);
    const { body } = await service.call("member", "GET", "/api/tool-consents");
    expect(body.consents).toEqual([
      { id: expect.any(String), userId: "member", agentId: "looper", toolId: "erase", grantedAt: expect.any(String) },
    ]);
    expect((await service.call("other", "GET", "/api/tool-consents")).body.consents).toEqual([]);

    await service.close();
    await start({ adapters: [changed()] });
    await asked("use erase");
    await service.close();
    await start();
    const [{ id }] = body.consents;
    expect((await service.call("other", "DELETE", `/api/tool-consents/${id}`)).status).toBe(404);
    expect((await service.call("member", "DELETE", `/api/tool-consents/${id}`)).status).toBe(204);
    expect((await service.call("member", "DELETE", `/api/tool-consents/${id}`)).status).toBe(404);
    await asked("use erase");
    expect(done).toHaveLength(2);
  });

  it("and an approval do not count for a tool that changed meanwhile: it does not run, and the model is told", async () => {
    await start();
    const { clientRequestId, runId, call } = await asked("use erase");
    await service.close();
    await start({ adapters: [changed()] });
    await decide(runId, call.callId, { decision: "approve" });
    await client.ended(clientRequestId);
    expect(textOf(resultsOf(clientRequestId)[0])).toMatch(/has changed/);
    expect(done).toEqual([]);
  });
});

describe("in a background turn", () => {
  const background = (prompt: string, more: Partial<ports.BackgroundTurn> = {}) =>
    service.app.port(ports.backgroundTurns).start({
      ...{ agentId: "looper", userId: "member", prompt, maxTurns: 5 },
      origin: { origin: "webhook", displayName: "event" },
      ...more,
    });
  const waiting = async (runId: string) => {
    await expect.poll(async () => (await runOf(runId)).approvals, { timeout: 10_000 }).toHaveLength(1);
    return (await runOf(runId)).approvals[0].call_id as string;
  };

  it("a call is refused if the agent's own policy for the background does not say ask", async () => {
    await start({ policy: { tools: { look: "ask" } }, runtime: { toolPolicy: { tools: { touch: "ask" } } } });
    const { runId } = await background("use erase and look and touch");
    await isAtRest(runId);
    const receipt = await receiptOf(runId);
    expect(receipt.tool_calls.map(({ is_error }: any) => is_error)).toEqual([true, true, true]);
    expect(receipt.output).toMatch(/needs a person's confirmation/);
    expect(done).toEqual([]);
  });

  it("a call of a turn that a background turn delegated is refused, too", async () => {
    const second = { ...agent({ tools: { look: "ask" } }), name: "Second" };
    const first = { name: "First", engine: "scripted" };
    const agents = new Map<string, object>([
      ["first", first],
      ["looper", second],
    ]);
    await start({ agents: new Map([...agents].map(([id, each]) => [id, { ...each, tools: ["look", "DelegateToAgent"] }])) });
    service.engine.otherwise(async (_turn, { callTool, signal }) => {
      const result = await callTool({ toolId: "DelegateToAgent", arguments: { agentId: "looper", prompt: "use look" } }, signal);
      return { output: textOf(result) };
    });
    const { runId } = await background("go", { agentId: "first" });
    await isAtRest(runId);
    expect((await receiptOf(runId)).output).toMatch(/needs a person's confirmation/);
    expect(done).toEqual([]);
  });

  it("a call waits if it says ask, over a restart, and the turn goes on once it is decided", async () => {
    const policy: ports.ToolPolicy = { background: { tools: { erase: "ask" } } };
    await start({ policy });
    const { runId } = await background("use erase", { key: "once" });
    const callId = await waiting(runId);
    expect(await approvalsOf("member")).toMatchObject([{ runId, callId, background: true }]);
    await service.close();
    await start({ policy });
    // The same turn, although its first work has ended.
    expect(await background("use erase", { key: "once" })).toEqual({ runId });
    expect((await decide(runId, callId, { decision: "approve" })).status).toBe(200);
    await isAtRest(runId);
    expect(await runOf(runId)).toMatchObject({ status: "completed", background: true });
    expect(done).toHaveLength(1);
    expect(await receiptOf(runId)).toMatchObject({ outcome: { status: "success" }, usage: { modelCalls: 2 } });
  });

  it("a turn that waits holds no seat of its agent", async () => {
    await start({ policy: { background: { riskLevels: { critical: "ask" } } }, background: { concurrencyPerAgent: 1 } });
    const { runId } = await background("use erase");
    const callId = await waiting(runId);
    const other = await background("hello");
    await isAtRest(other.runId);
    expect((await decide(runId, callId, { decision: "approve" })).status).toBe(200);
    await isAtRest(runId);
  });

  it("a turn that waits can be stopped", async () => {
    await start({ policy: { background: { tools: { erase: "ask" } } } });
    const { runId } = await background("use erase");
    const callId = await waiting(runId);
    expect(await service.app.port(ports.backgroundTurns).stop(runId, "workflow_cancelled")).toBe(true);
    await isAtRest(runId);
    expect(await runOf(runId)).toMatchObject({ status: "idle", interruption_reason: "workflow_cancelled" });
    expect((await decide(runId, callId, { decision: "approve" })).status).toBe(409);
    expect(await service.app.port(ports.backgroundTurns).stop(runId, "again")).toBe(false);
  });
});

describe("a background turn whose model's provider was away", () => {
  let calls = 0;
  /** The provider is away for the first attempt. Each later attempt makes one call that waits. */
  const awayFirst = defineAdapter({
    name: "agent-engines/away-first",
    port: ports.agentEngines,
    needs: {},
    open: (): ports.AgentEngine => ({
      id: "away-first",
      canPause: true,
      async run({ progress }, { needsApproval, callTool, signal }) {
        const call = { callId: "c", toolId: "erase", arguments: { path: "x" } };
        if (!progress && calls++ === 0) throw new ports.ModelUnreachable("The provider is away");
        if (!progress && (await needsApproval!(call))) throw new ports.TurnPaused([call], {});
        return { output: textOf(await callTool(call, signal)), messages: [], toolCalls: [], end: "completed" };
      },
    }),
  });
  const open = async () => {
    service = await startAgentService({
      dataDir: folder.path,
      agents: new Map([
        [
          "helper",
          { name: "Helper", engine: "away-first", tools: ["erase"], toolPolicy: { background: { tools: { erase: "ask" } } } },
        ],
      ]),
      adapters: [functionTools({ tools: [erase] }), awayFirst()],
      background: { backgroundRetries: ["1s"] },
    });
  };
  const begin = async () => {
    calls = 0;
    await open();
    const { runId } = await service.app.port(ports.backgroundTurns).start({
      ...{ agentId: "helper", userId: "member", prompt: "x", key: "once", origin: { origin: "webhook", displayName: "event" } },
    });
    await expect.poll(async () => (await runOf(runId)).approvals, { timeout: 30_000 }).toHaveLength(1);
    expect(await runOf(runId)).toMatchObject({ status: "running", attempts: 2 });
    return runId;
  };

  it.each(["in one process", "across a restart"])("waits for a person in its next attempt, and goes on: %s", async (how) => {
    const runId = await begin();
    if (how === "across a restart") {
      await service.close();
      await open();
    }
    const again = await service.app.port(ports.backgroundTurns).start({
      ...{ agentId: "helper", userId: "member", prompt: "x", key: "once", origin: { origin: "webhook", displayName: "event" } },
    });
    expect(again.runId).toBe(runId);
    expect((await decide(runId, "c", { decision: "approve" })).status).toBe(200);
    await isAtRest(runId);
    expect([await runOf(runId), done]).toMatchObject([{ status: "completed", attempts: 2 }, [["erase", { path: "x" }]]]);
    expect((await receiptOf(runId)).output).toBe("erase is done");
  });

  it("does not begin again when its plan is looked at again after a kill, while it waits", async () => {
    const runId = await begin();
    const engine = service.app.port(ports.engine);
    // What the engine does if the process died after the attempt had begun, and before the engine knew.
    await engine.start("background-retry", "looked-at-again", { runId, attempt: 2, delayMs: 0 });
    await expect.poll(async () => (await engine.status("looked-at-again"))?.state).toBe("completed");
    expect([await runOf(runId), calls]).toMatchObject([{ status: "running", attempts: 2, approvals: [{}] }, 2]);
  });

  it("can be stopped while its next attempt waits", async () => {
    const runId = await begin();
    expect(await service.app.port(ports.backgroundTurns).stop(runId, "not_needed")).toBe(true);
    await isAtRest(runId);
    expect(await runOf(runId)).toMatchObject({ status: "idle", interruption_reason: "not_needed" });
    expect([(await decide(runId, "c", { decision: "approve" })).status, done]).toEqual([409, []]);
  });
});

describe("an agent engine", () => {
  const helper = async (engine: string, call: ports.PausedCall) => {
    service = await startAgentService({
      agents: new Map([["helper", { name: "Helper", engine, tools: ["erase"] }]]),
      adapters: [functionTools({ tools: [erase] }), pausingEngine(call)],
    });
    client = await service.connect("member");
  };

  it("that cannot pause gets such calls refused", async () => {
    const call = { callId: "c", toolId: "erase", arguments: { path: "x" } };
    await helper("scripted", call);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    service.engine.otherwise(async (_turn, { callTool, needsApproval, signal }) =>
      resolve([await needsApproval?.(call), await callTool(call, signal)]),
    );
    const { clientRequestId } = await client.start("x");
    await client.ended(clientRequestId);
    expect(await promise).toMatchObject([false, { isError: true }]);
    expect(done).toEqual([]);
  });

  it("gets its progress back as it was", async () => {
    await helper("pausing", { callId: "c", toolId: "erase", arguments: { path: "x" } });
    const { clientRequestId } = await client.start("x", {}, { agentId: "helper" });
    const { runId } = await client.event("query:started", clientRequestId);
    await expect.poll(() => messages(clientRequestId, "approval")).toHaveLength(1);
    await decide(runId, "c", { decision: "approve" });
    expect((await client.ended(clientRequestId)).data.result.output).toBe(`erase is done after ${TEXT}`);
  });

  it.each([".", "..", "a/b?c#d", "x".repeat(500), ""])("may give its calls any ID: %j", async (toolCallId) => {
    await helper("pausing", { callId: toolCallId, toolId: "erase", arguments: { path: "x" } });
    const { clientRequestId } = await client.start("x", {}, { agentId: "helper" });
    const { runId } = await client.event("query:started", clientRequestId);
    await expect.poll(() => messages(clientRequestId, "approval")).toHaveLength(1);
    const [{ callId }] = messages(clientRequestId, "approval");
    expect(encodeURIComponent(callId)).toBe(callId);
    expect((await decide(runId, callId, { decision: "approve" })).status).toBe(200);
    expect((await client.ended(clientRequestId)).data.result.output).toBe(`erase is done after ${TEXT}`);
  });

  it("asks no person about a call whose arguments break the tool's schema", async () => {
    await helper("pausing", { callId: "c", toolId: "erase", arguments: { path: 1 } });
    const { clientRequestId } = await client.start("x", {}, { agentId: "helper" });
    expect((await client.ended(clientRequestId)).data.result.output).toMatch(/do not fit the tool's schema/);
  });
});
