import { setTimeout as sleep } from "node:timers/promises";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { agentSchedules } from "@portico/operator/agent-schedules";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

const MINUTE_MS = 60_000;
let folder: ReturnType<typeof temporaryFolder>;
let clock: ManualClock;
let service: AgentService;
let agents: CountedAgents;

/** Agents that count how often all of them were listed: schedules list them each second. */
class CountedAgents extends Map<string, object> {
  looks = 0;
  override keys() {
    this.looks++;
    return super.keys();
  }
}

beforeEach(() => {
  folder = temporaryFolder();
  clock = createManualClock();
  agents = new CountedAgents([
    ["helper", { name: "Helper", engine: "scripted", schedules: [{ name: "news", everyMs: MINUTE_MS, prompt: "What is new?" }] }],
  ]);
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

const agentWith = (overlap: string | undefined) => ({
  name: "Helper",
  engine: "scripted",
  schedules: [{ name: "news", everyMs: MINUTE_MS, prompt: "Look", overlap }],
});
const start = async () => {
  service = await startAgentService({
    clock,
    agents,
    dataDir: folder.path,
    adapters: [recordSchedules({})],
    plugins: [agentSchedules({})],
  });
  await pass(2000);
};
const pass = async (ms: number) => {
  for (let left = ms; left > 0; left -= 1000) await clock.advance(Math.min(left, 1000));
  // The last look may still write. Two more looks begin only when it has ended.
  for (const { looks } = agents; agents.looks < looks + 2;) {
    const before = agents.looks;
    await clock.advance(1000);
    // A busy machine takes its time to look. A clock that went on meanwhile would bring further planned times.
    for (let waits = 0; agents.looks === before && waits < 15; waits++) await sleep(2);
  }
};
const runs = async (): Promise<any[]> => (await service.call("owner", "GET", "/api/runs")).body.runs;
const list = async () => (await service.call("owner", "GET", "/api/schedules")).body.schedules;
const nextMinute = () => new Date((Math.floor(clock.now() / MINUTE_MS) + 1) * MINUTE_MS).toISOString();

describe("schedules of an agent", () => {
  it("start a background turn at each planned time, for the instance's owner, and the run says which schedule it is of", async () => {
    await start();
    await pass(2 * MINUTE_MS);
    await expect.poll(async () => (await runs()).filter(({ status }) => status === "completed").length).toBe(2);
    expect(service.engine.played).toEqual(["What is new?", "What is new?"]);
    const [run] = await runs();
    expect(run).toMatchObject({ background: true, inbound: { origin: "schedule", displayName: "news" } });
    expect((await service.call("member", "GET", "/api/runs")).body.runs).toEqual([]);
  });

  it("start each planned time once, also over a restart", async () => {
    await start();
    await pass(MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(1);
    await service.close();
    await start();
    await pass(2000);
    expect((await runs()).length).toBe(1);
    await pass(MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(2);
  });

  it("are listed with their next times and the last one that was started", async () => {
    agents.set("nightly", {
      name: "Nightly",
      engine: "scripted",
      schedules: [
        { name: "report", cron: "30 6 * * 1-5", timeZone: "Europe/Berlin", prompt: "Report" },
        { name: "off", everyMs: MINUTE_MS, prompt: "Never", enabled: false },
        { name: "broken", cron: "99 * * * *", prompt: "Never" },
      ],
    });
    await start();
    const next = nextMinute();
    const [news, report, broken, ...others] = await list();
    expect(others).toEqual([]);
    expect(news).toMatchObject({ agentId: "helper", name: "news", everyMs: MINUTE_MS, paused: false });
    expect([news.next[0], news.next.length, "last" in news]).toEqual([next, 5, false]);
    expect(report).toMatchObject({ agentId: "nightly", cron: "30 6 * * 1-5", timeZone: "Europe/Berlin" });
    expect(broken).toMatchObject({ name: "broken", next: [], fault: expect.stringContaining("not valid") });
    await pass(MINUTE_MS);
    await expect.poll(async () => (await list())[0].last).toBe(next);
  });

  it("say how their newest turn ended, with its run, and fail until a turn succeeds", async () => {
    await start();
    expect((await list())[0]).toMatchObject({ state: "new", failures: 0 });
    service.engine.on("What is new?", async () => {
      throw new Error("broken");
    });
    const statuses = async () => (await runs()).map(({ status }) => status);
    await pass(2 * MINUTE_MS);
    await expect.poll(statuses).toEqual(["failed", "failed"]);
    const [newest] = await runs();
    expect((await list())[0]).toMatchObject({
      state: "failing",
      failures: 2,
      lastEnd: { runId: newest.run_id, status: "failed", endedAt: newest.completed_at },
    });
    await service.close();
    await start();
    expect((await list())[0]).toMatchObject({ state: "failing", failures: 2 });
    service.engine.on("What is new?", async () => {});
    await pass(MINUTE_MS);
    await expect.poll(async () => (await statuses())[0]).toBe("completed");
    expect((await list())[0]).toMatchObject({ state: "ok", failures: 0, lastEnd: { status: "completed" } });
  });

  it("fail with a turn that a limit interrupted", async () => {
    agents.set("helper", { ...agentWith(undefined), limits: { turnSeconds: 20 } });
    await start();
    const begun = createGate();
    service.engine.on("Look", async (_turn, context) => (begun.open(), untilStopped(context)));
    await pass(MINUTE_MS);
    await begun.opened;
    await pass(30_000);
    await expect.poll(async () => (await runs())[0]?.interruption_reason).toBe("time_limit");
    expect((await list())[0]).toMatchObject({ state: "failing", failures: 1, lastEnd: { status: "failed" } });
  });

  it("start nothing while they are paused, and go on when they are resumed", async () => {
    await start();
    const path = "/api/schedules/helper/news";
    expect((await service.call("owner", "POST", `${path}/pause`)).body).toEqual({ ok: true });
    expect((await list())[0]).toMatchObject({ paused: true, next: [] });
    await pass(3 * MINUTE_MS);
    expect(await runs()).toEqual([]);
    await service.call("owner", "POST", `${path}/resume`);
    await pass(MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(1);
  });

  it("are started by hand, as often as the owner asks", async () => {
    await start();
    const path = "/api/schedules/helper/news/trigger";
    const answers = [await service.call("owner", "POST", path), await service.call("owner", "POST", path)];
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    await expect
      .poll(async () => (await runs()).map(({ run_id: id }) => id).toSorted())
      .toEqual(answers.map(({ body }) => body.runId).toSorted());
  });

  it("start no turn while the turn before goes on, with the overlap skip", async () => {
    agents.set("helper", agentWith("skip"));
    await start();
    const gate = createGate();
    service.engine.on("Look", async () => gate.opened);
    await pass(3 * MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(1);
    gate.open();
    await expect.poll(async () => (await runs())[0].status).toBe("completed");
    await pass(MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(2);
  });

  it.each([
    ["a schedule", agentWith(undefined)],
    ["a heartbeat", { name: "Helper", engine: "scripted", heartbeat: { enabled: true, everyMs: MINUTE_MS, prompt: "Look" } }],
  ])(
    "let only the newest planned time of %s wait for the end of the turn before, if it says nothing else",
    async (_kind, agent) => {
      agents.set("helper", agent);
      await start();
      const gate = createGate();
      service.engine.on("Look", async () => gate.opened);
      await pass(5 * MINUTE_MS);
      await expect.poll(async () => (await runs()).length).toBe(1);
      expect((await list())[0].waiting).toBe(1);
      const newest = new Date(Math.floor(clock.now() / MINUTE_MS) * MINUTE_MS).toISOString();
      gate.open();
      await expect.poll(async () => (await runs())[0].status).toBe("completed");
      await pass(2000);
      await expect.poll(async () => (await runs()).length).toBe(2);
      expect((await list())[0]).toMatchObject({ last: newest });
      expect(await list()).not.toContainEqual(expect.objectContaining({ waiting: expect.anything() }));
    },
  );

  it("let the oldest planned times of a cron expression wait, and start them in their order", async () => {
    agents.set("helper", {
      name: "Helper",
      engine: "scripted",
      schedules: [{ name: "news", cron: "* * * * *", prompt: "Look" }],
    });
    await start();
    const gate = createGate();
    service.engine.on("Look", async () => gate.opened);
    await pass(3 * MINUTE_MS);
    expect([(await runs()).length, (await list())[0].waiting]).toEqual([1, 2]);
    gate.open();
    for (const count of [2, 3]) {
      await expect.poll(async () => (await runs()).every(({ status }) => status === "completed")).toBe(true);
      await pass(2000);
      await expect.poll(async () => (await runs()).length).toBeGreaterThanOrEqual(count);
    }
  });

  it("start a turn beside the turn before, with the overlap allow", async () => {
    agents.set("helper", agentWith("allow"));
    await start();
    const gate = createGate();
    service.engine.on("Look", async () => gate.opened);
    await pass(2 * MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(2);
    gate.open();
  });

  it("stop the turn before, with the overlap cancel", async () => {
    agents.set("helper", agentWith("cancel"));
    await start();
    service.engine.on("Look", async (_turn, context) => untilStopped(context));
    await pass(2 * MINUTE_MS);
    await expect
      .poll(async () => (await runs()).map(({ status, interruption_reason: reason }) => [status, reason]))
      .toEqual([
        ["running", undefined],
        ["idle", "schedule_overlap"],
      ]);
  });

  it("change and end with the agent.json, without a restart", async () => {
    await start();
    agents.set("helper", {
      name: "Helper",
      engine: "scripted",
      schedules: [{ name: "news", everyMs: 2 * MINUTE_MS, prompt: "Changed" }],
    });
    await pass(4 * MINUTE_MS);
    await expect.poll(async () => (await runs()).length).toBe(2);
    expect(new Set(service.engine.played)).toEqual(new Set(["Changed"]));
    agents.set("helper", { name: "Helper", engine: "scripted" });
    await pass(4 * MINUTE_MS);
    expect((await runs()).length).toBe(2);
    expect(await list()).toEqual([]);
  });

  it("are the owner's alone: 401, 403, and 404 for one that does not exist", async () => {
    await start();
    const calls = [
      ["GET", "/api/schedules"],
      ["POST", "/api/schedules/helper/news/trigger"],
      ["POST", "/api/schedules/helper/news/pause"],
      ["POST", "/api/schedules/helper/news/resume"],
    ] as const;
    for (const [method, path] of calls) {
      expect((await service.call(undefined, method, path)).status).toBe(401);
      expect((await service.call("member", method, path)).body.code).toBe("owner_required");
    }
    for (const [method, path] of calls.slice(1))
      expect((await service.call("owner", method, path.replace("news", "none"))).body.code).toBe("unknown_schedule");
  });
});

describe("the heartbeat of an agent", () => {
  it("starts a turn at its interval, is listed as a schedule, and is told in the list of agents", async () => {
    agents.clear();
    agents.set("beating", {
      name: "B",
      engine: "scripted",
      heartbeat: { enabled: true, everyMs: MINUTE_MS, prompt: "Look around" },
    });
    agents.set("resting", { name: "R", engine: "scripted", heartbeat: { enabled: false, everyMs: MINUTE_MS, prompt: "Never" } });
    await start();
    expect((await list()).map(({ agentId, name }: any) => [agentId, name])).toEqual([["beating", "heartbeat"]]);
    const { body } = await service.call("owner", "GET", "/api/agents");
    expect(body.agents.map(({ id, heartbeatEnabled }: any) => [id, heartbeatEnabled])).toEqual([
      ["beating", true],
      ["resting", false],
    ]);
    await pass(2 * MINUTE_MS);
    await expect.poll(() => service.engine.played).toEqual(["Look around", "Look around"]);
  });
});
