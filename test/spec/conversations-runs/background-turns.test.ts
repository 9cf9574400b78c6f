import { functionTools } from "@portico/adapters/tools/functions";
import { createManualClock } from "@portico/adapters/clock/manual";
import { definePlugin, ports } from "@portico/core";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { forgetWork } from "../../harness/forgotten-work.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let folder: ReturnType<typeof temporaryFolder>;
let service: AgentService;
let turns: ports.BackgroundTurns;
let engine: ports.Engine;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

/** Work that answers the signal `ended`, over restarts, as a workflow's node does. */
const waiter = definePlugin({
  name: "waiter",
  config: v.strictObject({}),
  needs: { engine: ports.engine },
  contract: {},
  setup({ engine }, _config, scope) {
    engine.define("wait", (context) => context.waitFor("ended"), { onInterrupted: "resume" });
    scope.onReady(() => engine.ready());
    return {};
  },
});

async function start(options: AgentServiceOptions = {}): Promise<void> {
  service = await startAgentService({ dataDir: folder.path, plugins: [waiter({})], ...options });
  turns = service.app.port(ports.backgroundTurns);
  engine = service.app.port(ports.engine);
}
/** The next process, on what the one before has left. */
const restart = async (options: AgentServiceOptions = {}) => {
  await service.close();
  await start(options);
};
const turn = (prompt: string, more: Partial<ports.BackgroundTurn> = {}): ports.BackgroundTurn => ({
  ...{ agentId: "helper", userId: "owner", prompt, toolIds: [], maxTurns: 5 },
  origin: { origin: "workflow", displayName: "triage" },
  ...more,
});
/** Begin a turn whose end is told to work of this id. */
const startToTell = async (prompt: string, workId: string, more: Partial<ports.BackgroundTurn> = {}) => {
  await engine.start("wait", workId, {});
  return turns.start(turn(prompt, { tell: { workId, signal: "ended" }, ...more }));
};
const told = (workId: string) =>
  vi.waitFor(async () => {
    const status = await engine.status(workId);
    expect(status?.state).toBe("completed");
    return status!.output as ports.BackgroundTurnEnd;
  }, 30_000);
const runOf = async (runId: string) => (await service.call("owner", "GET", `/api/runs/${runId}`)).body;
const receiptsOf = async (runId: string) => (await service.call("owner", "GET", `/api/runs/${runId}/receipt`)).body.receipts;
const isOver = (runId: string) =>
  vi.waitFor(async () => {
    const run = await runOf(runId);
    expect(run.status).toMatch(/^(idle|completed|failed)$/);
    return run;
  }, 30_000);
const away = () => Promise.reject(new ports.EngineUnavailable("The engine is away"));
const logAway = () => Promise.reject(new ports.LogUnavailable("The log is away"));

describe("a turn with a key", () => {
  it("is the same turn over a restart, before and after it has begun and ended", async () => {
    await start({ background: { concurrencyPerAgent: 1 } });
    service.engine.on("first", async (_turn, context) => untilStopped(context));
    await turns.start(turn("first"));
    await expect.poll(() => service.engine.played).toEqual(["first"]);
    const waits = await turns.start(turn("second", { key: "run-1/reply/1" }));
    await restart();
    expect(await turns.start(turn("second", { key: "run-1/reply/1" }))).toEqual(waits);
    expect(await isOver(waits.runId)).toMatchObject({ status: "completed", title: "second" });
    await restart();
    expect(await turns.start(turn("second", { key: "run-1/reply/1" }))).toEqual(waits);
    await turns.start(turn("third"));
    await expect.poll(() => service.engine.played).toEqual(["third"]);
    expect(await receiptsOf(waits.runId)).toHaveLength(1);
  });

  it("tells keys apart that UTF-8 would not, and no key is another turn's id", async () => {
    await start();
    const keys = ["\ud800", "\ud801", "\ufffd", "", "a", "A", "a ", "x".repeat(100_000)];
    const ids = await Promise.all(keys.map(async (key) => (await turns.start(turn("x", { key }))).runId));
    expect(new Set(ids).size).toBe(keys.length);
    for (const id of ids) expect(id).toMatch(/^run_key_[\w-]{43}$/);
  });

  it("that the engine has forgotten is not played again: its end is told once more", async () => {
    await start();
    const first = await startToTell("once", "first", { key: "k" });
    const end = await told("first");
    await service.close();
    await forgetWork(folder.path, "background-turn");
    await start();
    expect(await startToTell("once", "second", { key: "k" })).toEqual(first);
    expect(await told("second")).toEqual(end);
    expect(service.engine.played).toEqual([]);
    expect(await receiptsOf(first.runId)).toHaveLength(1);
  });
});

describe("the end of a turn is told", () => {
  it("after it is durable: run and receipt say the same", async () => {
    await start();
    const signal = engine.signal.bind(engine);
    const found: unknown[] = [];
    vi.spyOn(engine, "signal").mockImplementation(async (...given) => {
      const { runId } = given[2] as ports.BackgroundTurnEnd;
      found.push([(await runOf(runId)).status, (await receiptsOf(runId)).length]);
      return signal(...given);
    });
    const { runId } = await startToTell("Hello", "work");
    expect(await told("work")).toEqual({ runId, status: "completed", output: "You said: Hello" });
    expect(found).toEqual([["completed", 1]]);
  });

  it("with what was said, why it failed, and that it was cut", async () => {
    await start();
    service.engine.on("broken", async (_turn, { say }) => {
      await say({ type: "text", delta: "So far" });
      throw new Error("hunter2");
    });
    service.engine.on("cut", async () => ({ output: "Not all", end: "max_turns" }));
    service.engine.on("much", async () => ({ output: "A".repeat(2_000_000) }));
    await startToTell("broken", "broken");
    await startToTell("cut", "cut");
    await startToTell("much", "much");
    expect(await told("broken")).toMatchObject({
      ...{ status: "failed", output: "So far", reason: "error" },
      failure: { code: "internal_error", message: "The turn failed" },
    });
    expect(await told("cut")).toMatchObject({ status: "completed", output: "Not all", reason: "max_turns" });
    const { output } = await told("much");
    expect(output).toBe(`${"A".repeat(1_048_576)}… [cut: 2000000 characters in all]`);
  });

  it("where it was not done in time: failed, as its run", async () => {
    const clock = createManualClock();
    await start({ clock, background: { timeoutMs: 60_000 } });
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    await startToTell("slow", "work");
    await expect.poll(() => service.engine.played).toEqual(["slow"]);
    await clock.advance(60_000);
    expect(await told("work")).toMatchObject({ status: "failed", reason: "timeout" });
  });

  it("where its process died: closed at the next start, and told there", async () => {
    await start();
    vi.spyOn(service.app.port(ports.log), "appendAll").mockImplementation(logAway);
    const { runId } = await startToTell("once", "work");
    await expect.poll(() => service.engine.played).toEqual(["once"]);
    await restart();
    expect(await told("work")).toMatchObject({ runId, status: "failed", reason: "process_restart" });
    expect(service.engine.played).toEqual([]);
  });

  it("where the process stops in order: interrupted", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => {
      await context.say({ type: "text", delta: "So far" });
      return untilStopped(context);
    });
    await startToTell("long", "work");
    await expect.poll(() => service.engine.played).toEqual(["long"]);
    await restart();
    expect(await told("work")).toMatchObject({ status: "interrupted", reason: "system_suspension", output: "So far" });
  });

  it("again while the engine is away", async () => {
    await start();
    const tells = vi.spyOn(engine, "signal").mockImplementationOnce(away);
    await startToTell("once", "work");
    expect(await told("work")).toMatchObject({ status: "completed" });
    expect(tells).toHaveBeenCalledTimes(2);
    expect(service.engine.played).toEqual(["once"]);
  });

  it("at the next start, as it was, where the process died between its end and its telling", async () => {
    await start();
    const tells = vi.spyOn(engine, "signal").mockImplementation(away);
    const { runId } = await startToTell("once", "work");
    await expect.poll(() => tells.mock.calls.length).toBeGreaterThan(0);
    await restart();
    expect(await told("work")).toEqual({ runId, status: "completed", output: "You said: once" });
    expect(service.engine.played).toEqual([]);
    expect(await receiptsOf(runId)).toHaveLength(1);
  });

  it("to no listener if the work is unknown, without an error", async () => {
    await start();
    const { runId } = await turns.start(turn("x", { tell: { workId: "\0", signal: "ended" } }));
    await isOver(runId);
    await startToTell("y", "work");
    await told("work");
    expect(service.telemetry.lines.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
  });

  it("by a signal that the engine takes: any other is refused before anything is accepted", async () => {
    await start();
    for (const signal of ["", "\0", "\ud800", "x".repeat(513)])
      await expect(turns.start(turn("x", { tell: { workId: "work", signal } }))).rejects.toThrow(TypeError);
    await startToTell("y", "work");
    await told("work");
    expect(service.engine.played).toEqual(["y"]);
  });
});

describe("a turn that is stopped", () => {
  const reason = "workflow_cancelled";

  it("while it executes: interrupted for this reason, with what it had said", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => {
      await context.say({ type: "text", delta: "So far" });
      return untilStopped(context);
    });
    const { runId } = await startToTell("long", "work");
    await expect.poll(() => service.engine.played).toEqual(["long"]);
    expect(await turns.stop(runId, reason)).toBe(true);
    expect(await told("work")).toEqual({ runId, status: "interrupted", output: "So far", reason });
    expect(await runOf(runId)).toMatchObject({ status: "idle", interruption_reason: reason });
    expect(await receiptsOf(runId)).toEqual([expect.objectContaining({ output: "So far", interruption_reason: reason })]);
    expect(await turns.stop(runId, reason)).toBe(false);
  });

  describe("in line", () => {
    let gate: Gate;
    const startInLine = async () => {
      gate = createGate();
      await start({ background: { concurrencyPerAgent: 1 } });
      service.engine.on("first", () => gate.opened.then(() => {}));
      await turns.start(turn("first"));
      await expect.poll(() => service.engine.played).toEqual(["first"]);
    };

    it("never begins; its end is told at once, and it leaves the queue", async () => {
      await startInLine();
      const { runId } = await startToTell("second", "work");
      const { runId: last } = await turns.start(turn("third"));
      expect(await turns.stop(runId, reason)).toBe(true);
      expect(await told("work")).toEqual({ runId, status: "interrupted", output: "", reason });
      expect(await runOf(runId)).toMatchObject({ status: "idle", interruption_reason: reason, background: true });
      expect(await receiptsOf(runId)).toHaveLength(1);
      expect((await engine.status(runId.replace("run_", "turn_")))?.state).toBe("cancelled");
      gate.open();
      await isOver(last);
      expect(service.engine.played).toEqual(["first", "third"]);
      expect(await receiptsOf(runId)).toHaveLength(1);
    });

    it("is told when its line has come, where it could not be told at once", async () => {
      await startInLine();
      const { runId } = await startToTell("second", "work");
      const signal = engine.signal.bind(engine);
      vi.spyOn(engine, "signal").mockImplementation((id, ...given) => (id === "work" ? away() : signal(id, ...given)));
      expect(await turns.stop(runId, reason)).toBe(true);
      expect(await runOf(runId)).toMatchObject({ status: "idle", interruption_reason: reason });
      // Its work is still queued, but the turn has ended.
      expect(await turns.stop(runId, reason)).toBe(false);
      vi.mocked(engine.signal).mockRestore();
      await restart({ background: { concurrencyPerAgent: 1 } });
      expect(await told("work")).toEqual({ runId, status: "interrupted", output: "", reason });
      expect(service.engine.played).toEqual([]);
      expect(await receiptsOf(runId)).toHaveLength(1);
    });

    it("leaves the queue with the next stop, where the process died before it left", async () => {
      await startInLine();
      const { runId } = await turns.start(turn("second"));
      const kept = () => service.app.port(ports.records).collection({ name: "background-turns" }).get(runId);
      const cancel = vi.spyOn(engine, "cancel").mockImplementation(away);
      expect(await turns.stop(runId, reason)).toBe(true);
      expect(await runOf(runId)).toMatchObject({ status: "idle", interruption_reason: reason });
      // Until it has left, its user has an open turn: if its run was erased now, the turn would begin again.
      expect(await kept()).toBeDefined();
      cancel.mockRestore();
      // The process dies between the two writes of the second stop.
      const records = service.app.port(ports.records);
      const open = records.collection({ name: "background-turns" });
      vi.spyOn(open, "remove").mockRejectedValueOnce(new ports.RecordsUnavailable("The records are away"));
      expect(await turns.stop(runId, reason)).toBe(false);
      expect((await engine.status(runId.replace("run_", "turn_")))?.state).toBe("cancelled");
      expect(await turns.stop(runId, reason)).toBe(false);
      expect(await kept()).toBeUndefined();
      expect(await receiptsOf(runId)).toHaveLength(1);
    });

    it("never begins after a restart either, without a listener", async () => {
      await startInLine();
      const { runId } = await turns.start(turn("second"));
      expect(await turns.stop(runId, reason)).toBe(true);
      await restart({ background: { concurrencyPerAgent: 1 } });
      expect(await isOver(runId)).toMatchObject({ status: "idle", interruption_reason: reason });
      expect(service.engine.played).toEqual([]);
    });
  });

  it("is interrupted for this reason, and not by the restart, where its process died before its end was kept", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    vi.spyOn(service.app.port(ports.log), "appendAll").mockImplementation(logAway);
    const { runId } = await startToTell("long", "work");
    await expect.poll(() => service.engine.played).toEqual(["long"]);
    expect(await turns.stop(runId, reason)).toBe(true);
    await restart();
    expect(await told("work")).toMatchObject({ runId, status: "interrupted", reason });
  });

  it("just when it begins: it plays nothing, or hears of it", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    for (let index = 0; index < 30; index++) {
      const { runId } = await startToTell("x", `${index}`);
      for (let tick = 0; tick < index % 10; tick++) await new Promise((resolve) => setImmediate(resolve));
      expect(await turns.stop(runId, reason)).toBe(true);
      expect(await told(`${index}`)).toMatchObject({ runId, status: "interrupted", reason });
    }
  });

  it("leaves nothing behind in the records", async () => {
    await start();
    const { runId } = await startToTell("done", "done");
    await told("done");
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const other = await startToTell("long", "work");
    await turns.stop(other.runId, reason);
    await told("work");
    expect(await turns.stop(runId, reason)).toBe(false);
    const kept = service.app.port(ports.records).collection({ name: "background-turns" });
    expect((await kept.query()).items).toEqual([]);
  });

  it("cannot stop a query's turn, which belongs to its user", async () => {
    await start();
    service.engine.otherwise(async (_turn, context) => untilStopped(context));
    const client = await service.connect("owner");
    const { clientRequestId } = await client.start("Hello");
    const { runId } = await client.event("query:started", clientRequestId);
    expect(await turns.stop(runId, reason)).toBe(false);
  });
});

describe("the tools of a turn", () => {
  it("are the agent's own where none are listed", async () => {
    const tool = (name: string) =>
      ({
        name,
        description: name,
        inputSchema: { type: "object" },
        run: async () => "done",
        riskLevel: "low",
        requiresConfirmation: false,
      }) as const;
    await start({
      agents: new Map([["helper", { name: "Helper", engine: "scripted", tools: ["one"] }]]),
      adapters: [functionTools({ tools: [tool("one"), tool("two")] })],
    });
    const offered: string[][] = [];
    service.engine.otherwise(async ({ tools }) => void offered.push(tools.map(({ id }) => id)));
    await startToTell("x", "own", { toolIds: undefined });
    await told("own");
    await startToTell("x", "listed", { toolIds: ["two"] });
    await told("listed");
    expect(offered).toEqual([["one"], ["two"]]);
  });
});
