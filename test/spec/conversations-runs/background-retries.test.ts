import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { compactSqliteStore } from "@portico/adapters/stores/compact-sqlite";
import { functionTools } from "@portico/adapters/tools/functions";
import { definePlugin, ports } from "@portico/core";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createStoredRuns } from "../../../plugins/src/conversations-runs/runtime/stored-runs.ts";
import { type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { forgetWork } from "../../harness/forgotten-work.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

const MINUTE_MS = 60_000;
let folder: ReturnType<typeof temporaryFolder>;
let clock: ManualClock;
let service: AgentService;
let turns: ports.BackgroundTurns;

beforeEach(() => {
  folder = temporaryFolder();
  clock = createManualClock();
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

/** Work that keeps what it is told of the end of a turn. */
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
const note = {
  ...{ name: "note", description: "Notes", inputSchema: { type: "object" } },
  run: async () => "done",
  riskLevel: "low",
  requiresConfirmation: false,
} as const;

const start = async (options: AgentServiceOptions = {}) => {
  service = await startAgentService({
    ...{ clock, dataDir: folder.path, plugins: [waiter({})], background: { backgroundRetries: ["1m", "5m"] } },
    ...options,
  });
  turns = service.app.port(ports.backgroundTurns);
};
const restart = async (options: AgentServiceOptions = {}) => {
  await service.close();
  await start(options);
};
const turn = (prompt: string, more: Partial<ports.BackgroundTurn> = {}): ports.BackgroundTurn => ({
  ...{ agentId: "helper", userId: "owner", prompt, maxTurns: 5 },
  origin: { origin: "webhook", displayName: "deploy" },
  ...more,
});
const unreachable = () => new ports.ModelUnreachable("The provider is away");
/** The provider is away for this many attempts of a prompt. */
const away = (prompt: string, times: number, error: () => Error = unreachable) => {
  let count = 0;
  service.engine.on(prompt, async (_turn, { say }) => {
    if (count++ < times) throw error();
    await say({ type: "text", delta: "Done" });
  });
};
const runOf = async (runId: string) => (await service.call("owner", "GET", `/api/runs/${runId}`)).body;
const receiptsOf = async (runId: string): Promise<any[]> =>
  (await service.call("owner", "GET", `/api/runs/${runId}/receipt`)).body.receipts;
const untilRun = (runId: string, facts: object) => expect.poll(() => runOf(runId), { timeout: 30_000 }).toMatchObject(facts);
/** Passes time until the run is so. */
const passUntilRun = (runId: string, facts: object) =>
  expect
    .poll(
      async () => {
        await clock.advance(MINUTE_MS);
        return runOf(runId);
      },
      { timeout: 30_000 },
    )
    .toMatchObject(facts);
const again = (runId: string, holder: "owner" | "member" = "owner") => service.call(holder, "POST", `/api/runs/${runId}/again`);

describe("a background turn whose model's provider is away", () => {
  it("is played again after the set pauses, in the same run, with a receipt per attempt", async () => {
    await start();
    away("Look", 2);
    const { runId } = await turns.start(turn("Look"));
    const at = clock.now();
    await untilRun(runId, {
      status: "idle",
      attempts: 1,
      retry_at: new Date(at + MINUTE_MS).toISOString(),
      failure: { code: "model_unreachable" },
    });
    await clock.advance(MINUTE_MS - 1);
    expect(service.engine.played).toHaveLength(1);
    await clock.advance(1);
    await untilRun(runId, { status: "idle", attempts: 2, retry_at: new Date(clock.now() + 5 * MINUTE_MS).toISOString() });
    await passUntilRun(runId, { status: "completed", attempts: 3 });
    const run = await runOf(runId);
    expect(["retry_at" in run, "failure" in run]).toEqual([false, false]);
    expect((await receiptsOf(runId)).map(({ outcome }) => outcome.status)).toEqual(["failed", "failed", "success"]);
    expect(service.engine.played).toHaveLength(3);
  });

  it("fails when its attempts are used up, and is found among the failed background runs", async () => {
    await start();
    away("Look", 9);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "idle" });
    await passUntilRun(runId, { status: "failed", attempts: 3, failure: { code: "model_unreachable" } });
    const found = await service.call("owner", "GET", "/api/runs/search?status=failed&background=true");
    expect(found.body.runs).toMatchObject([{ run_id: runId, inbound: { displayName: "deploy" } }]);
    const others = await service.call("owner", "GET", "/api/runs/search?status=failed&background=false");
    expect(others.body.runs).toEqual([]);
    expect((await service.call("owner", "GET", "/api/runs/search?background=maybe")).status).toBe(400);
  });

  it("keeps its planned attempt over a restart", async () => {
    await start();
    away("Look", 1);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "idle", attempts: 1 });
    await restart();
    expect(service.engine.played).toEqual([]);
    await passUntilRun(runId, { status: "completed", attempts: 2 });
    expect(service.engine.played).toEqual(["Look"]);
  });

  it("holds no seat of its agent while it waits", async () => {
    await start({ background: { backgroundRetries: ["1m"], concurrencyPerAgent: 1 } });
    away("Look", 1);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "idle" });
    const other = await turns.start(turn("Other"));
    await untilRun(other.runId, { status: "completed" });
    expect((await runOf(runId)).retry_at).toBeDefined();
  });

  it.each([
    ["no answer in time", () => new ports.ModelTimeout("No answer")],
    ["an overload", () => Object.assign(new Error("Overloaded"), { name: "ModelOverloaded", isPassing: true })],
    ["a refusal that passes", () => Object.assign(new Error("429"), { name: "ModelRefused", isPassing: true })],
    ["a list of models that does not arrive", () => new Error("No list", { cause: unreachable() })],
  ])("counts %s as away", async (_name, error) => {
    await start();
    away("Look", 1, error);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "idle", attempts: 1 });
  });

  it.each([
    ["its request was refused", () => Object.assign(new Error("400"), { name: "ModelRefused", isPassing: false })],
    ["its answer broke", () => Object.assign(new Error("Broken"), { name: "AnswerBroken" })],
    ["its engine is broken", () => new Error("Broken")],
  ])("is not meant if %s: the turn fails at once", async (_name, error) => {
    await start();
    away("Look", 1, error);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "failed" });
    expect(await runOf(runId)).not.toHaveProperty("retry_at");
  });

  it("is not played again once it called a tool or said something", async () => {
    await start({
      adapters: [functionTools({ tools: [note] })],
      agents: new Map([["helper", { name: "Helper", engine: "scripted", tools: ["note"] }]]),
    });
    service.engine.on("calls", async (_turn, { callTool, signal }) => {
      await callTool({ toolId: "note", arguments: {} }, signal);
      throw unreachable();
    });
    service.engine.on("says", async (_turn, { say }) => {
      await say({ type: "text", delta: "I will" });
      throw unreachable();
    });
    for (const prompt of ["calls", "says"]) {
      const { runId } = await turns.start(turn(prompt));
      await untilRun(runId, { status: "failed", failure: { code: "model_unreachable" } });
    }
    await clock.advance(10 * MINUTE_MS);
    expect(service.engine.played).toEqual(["calls", "says"]);
  });

  it("is not played again if other work is told of its end, which decides itself", async () => {
    await start();
    away("Look", 1);
    await service.app.port(ports.engine).start("wait", "work", {});
    const { runId } = await turns.start(turn("Look", { tell: { workId: "work", signal: "ended" } }));
    await untilRun(runId, { status: "failed" });
    const told = async () => (await service.app.port(ports.engine).status("work"))?.output;
    await expect.poll(told).toMatchObject({ status: "failed", failure: { code: "model_unreachable" } });
  });

  it("is not played again without pauses in the settings", async () => {
    await start({ background: { backgroundRetries: [] } });
    away("Look", 1);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "failed" });
  });

  it("is still the turn of its key while it waits, and when it has ended, although the engine has forgotten its work", async () => {
    await start();
    away("Look", 1);
    const first = await turns.start(turn("Look", { key: "event-1" }));
    await untilRun(first.runId, { status: "idle", attempts: 1 });
    await service.close();
    await forgetWork(folder.path, "background-turn");
    await start();
    const same = await turns.start(turn("Look", { key: "event-1" }));
    const other = await turns.start(turn("Other"));
    await untilRun(other.runId, { status: "completed" });
    expect([same, service.engine.played]).toEqual([first, ["Other"]]);
    await passUntilRun(first.runId, { status: "completed", attempts: 2 });
    expect(await turns.start(turn("Look", { key: "event-1" }))).toEqual(first);
    expect(service.engine.played).toEqual(["Other", "Look"]);
  });

  it("is stopped while it waits: no attempt begins, and its data can be erased", async () => {
    await start();
    away("Look", 1);
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "idle", attempts: 1 });
    expect((await service.call("owner", "POST", "/api/users/owner/stop-turns")).body.stopped).toBe(1);
    await untilRun(runId, { status: "idle", interruption_reason: "user_stop" });
    expect(await runOf(runId)).not.toHaveProperty("retry_at");
    expect(await turns.stop(runId, "user_stop")).toBe(false);
    await restart();
    await clock.advance(10 * MINUTE_MS);
    expect(service.engine.played).toEqual([]);
    const open = await service.app.port(ports.records).collection({ name: "background-turns" }).query({});
    expect(open.items).toEqual([]);
  });

  it("is erased with its user: no attempt begins, nothing of the user is left, and an attempt that was just begun does nothing", async () => {
    await start();
    away("Secret words of ada", 9);
    const { runId } = await turns.start(turn("Secret words of ada", { userId: "member" }));
    await untilRun(runId, { status: "idle", attempts: 1 });
    const stored = createStoredRuns({
      records: service.app.port(ports.records),
      log: service.app.port(ports.log),
      clock: service.app.port(ports.clock),
      ids: service.app.port(ports.ids),
    });
    const { signal } = new AbortController();
    const open = service.app.port(ports.records).collection<{ turn: object }>({ name: "background-turns" });
    const { turn: accepted } = (await open.get(runId))!.value;
    expect(await stored.countOpen("member")).toBe(1);
    expect(await stored.erase("member", signal)).toMatchObject({ runs: 0 });
    expect((await service.call("owner", "POST", "/api/users/member/stop-turns")).body.stopped).toBe(1);
    expect(await stored.countOpen("member")).toBe(0);
    expect(await stored.erase("member", signal)).toMatchObject({ runs: 1 });
    // The process that begins the attempt read the turn before it was stopped, and goes on now.
    const engine = service.app.port(ports.engine);
    const late = `${runId.replace("run_", "turn_")}!2-late`;
    await engine.start("background-turn", late, { ...accepted, attempt: 2 }, { key: "helper" });
    await expect.poll(async () => (await engine.status(late))?.state).toBe("completed");
    await clock.advance(10 * MINUTE_MS);
    const other = await turns.start(turn("Other"));
    await untilRun(other.runId, { status: "completed" });
    expect(service.engine.played).toEqual(["Secret words of ada", "Other"]);
    expect((await service.call("owner", "GET", `/api/runs/${runId}`)).status).toBe(404);
    expect(await Array.fromAsync(stored.items("member", signal))).toEqual([]);
    await restart();
    await clock.advance(10 * MINUTE_MS);
    expect(service.engine.played).toEqual([]);
    await service.close();
    // As the command that erases a user.
    await compactSqliteStore(folder.path, signal);
    expect(filesWith(folder.path, "Secret words of ada")).toEqual([]);
    await start();
  });

  it("can be stopped during a later attempt", async () => {
    await start();
    let count = 0;
    service.engine.on("Look", async (_turn, context) => {
      if (count++ === 0) throw unreachable();
      return untilStopped(context);
    });
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "idle", attempts: 1 });
    await passUntilRun(runId, { status: "running", attempts: 2 });
    expect(await turns.stop(runId, "workflow_cancelled")).toBe(true);
    await untilRun(runId, { status: "idle", interruption_reason: "workflow_cancelled", attempts: 2 });
  });
});

/** The files of a folder that contain a text. */
function filesWith(dir: string, text: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);
}

describe("run again", () => {
  it("starts a failed background run in a new run that names it, once, for the owner", async () => {
    await start();
    away("Look", 9);
    const { runId } = await turns.start(turn("Look", { toolIds: ["SendUserMessage"], userId: "member" }));
    await untilRun(runId, { status: "idle" });
    expect(await again(runId)).toMatchObject({ status: 409, body: { code: "run_not_repeatable" } });
    await passUntilRun(runId, { status: "failed" });
    expect((await again(runId, "member")).status).toBe(403);
    expect((await again("run_none")).status).toBe(404);
    let offered: readonly string[] = [];
    service.engine.on("Look", async ({ tools: given }) => void (offered = given.map(({ id }) => id)));
    const [started, atOnce] = await Promise.all([again(runId), again(runId)]);
    expect([started.status, atOnce.status]).toEqual([202, 202]);
    expect([atOnce.body, (await again(runId)).body]).toEqual([started.body, started.body]);
    const newId = started.body.runId;
    await untilRun(newId, { status: "completed", again_of: runId, user_id: "member", inbound: { displayName: "deploy" } });
    expect(offered).toEqual(["SendUserMessage"]);
    expect(await runOf(runId)).toMatchObject({ status: "failed", again_run_id: newId });
    expect(await again(newId)).toMatchObject({ status: 409 });
    expect(service.engine.played).toHaveLength(4);
  });

  it("is possible after any failure of a background turn, also over a restart", async () => {
    await start();
    service.engine.on("Look", () => Promise.reject(new Error("Broken")));
    const { runId } = await turns.start(turn("Look"));
    await untilRun(runId, { status: "failed" });
    await restart();
    const { body } = await again(runId);
    await untilRun(body.runId, { status: "completed", again_of: runId });
  });
});
