import { setTimeout as sleep } from "node:timers/promises";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isClusterRun } from "../../harness/members.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const MINUTE_MS = 60_000;
const parameters = {
  type: "object",
  properties: { region: { type: "string" }, days: { type: "integer", default: 1 } },
  required: ["region"],
  additionalProperties: false,
};
const output = {
  nodes: { n: { type: "transform", with: { value: "${{ parameters }}" } } },
  outputs: { given: "${{ nodes.n.output }}" },
};
const report = (...schedules: object[]) => ({ parameters, schedules, ...output });
const news = { name: "news", every: "1m", parameters: { region: "north" } };
/** It shows that schedules were looked at. */
const control = { schedules: [{ name: "each", every: "1m" }], nodes: { n: { type: "transform", with: { value: 1 } } } };

let folder: ReturnType<typeof temporaryFolder>;
let clock: ManualClock;
let service: WorkflowService;
beforeEach(() => {
  folder = temporaryFolder();
  clock = createManualClock();
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

const start = async (definitions: Record<string, object> = {}, adapters = [recordSchedules({})]) => {
  service = await startWorkflowService({
    ...{ clock, dataDir: folder.path, adapters },
    definitions: { "zz-control.json": control, ...definitions },
  });
  await looks();
};
const runsOf = async (workflowId: string): Promise<any[]> =>
  (await service.call("GET", `/api/workflow/${workflowId}/runs`)).body.runs;
/** The planned times of its runs, oldest first, in milliseconds since 1970. */
const plannedOf = async (workflowId: string): Promise<readonly number[]> =>
  (await runsOf(workflowId)).map(({ schedule }) => Date.parse(schedule.plannedAt)).toSorted((a, b) => a - b);
const list = async (): Promise<any[]> => (await service.call("GET", "/api/workflow/schedules")).body.schedules;
const listed = async (workflowId: string, name: string) =>
  (await list()).find((each) => each.workflowId === workflowId && each.name === name);
/** Lets some looks at the schedules end. */
const looks = async () => {
  for (let step = 0; step < 3; step++) {
    await clock.advance(1000);
    await sleep(5);
  }
};
/** Resolves when all that is planned within this time was started, as far as it is to start. */
const pass = async (minutes: number) => {
  for (let minute = 0; minute < minutes; minute++) {
    const before = (await runsOf("zz-control")).length;
    for (let second = 0; second < 60; second++) await clock.advance(1000);
    while ((await runsOf("zz-control")).length === before) await looks();
  }
  await looks();
};

// The test's clock does not wait for the chores of three processes. test/chaos/workflow-schedules.test.ts has two processes, and real time.
describe.skipIf(isClusterRun)("schedules of a workflow", () => {
  it("start a run at each planned time with their parameters and the defaults, and the run says which schedule it is of", async () => {
    await start({ "report.json": report(news) });
    const { next } = await listed("report", "news");
    await pass(2);
    const statuses = async () => (await runsOf("report")).map(({ status }) => status);
    await expect.poll(async () => (await statuses()).length).toBeGreaterThanOrEqual(2);
    await expect.poll(async () => new Set(await statuses())).toEqual(new Set(["completed"]));
    const first = (await runsOf("report")).at(-1);
    expect(first.schedule).toEqual({ name: "news", plannedAt: next[0] });
    const { finalOutputs, schedule } = await service.detail("report", first.runId);
    expect([finalOutputs.given, schedule]).toEqual([{ region: "north", days: 1 }, first.schedule]);
  });

  it("start each planned time once, also over a restart", async () => {
    const definitions = { "report.json": report({ ...news, catchUp: 10 }) };
    await start(definitions);
    await pass(1);
    await service.close();
    await start(definitions);
    await looks();
    const before = await plannedOf("report");
    await pass(1);
    await expect.poll(async () => (await plannedOf("report")).length).toBeGreaterThan(before.length);
    const planned = await plannedOf("report");
    expect(planned).toEqual(planned.map((_time, at) => planned[0]! + at * MINUTE_MS));
  });

  it("start the newest planned times that were missed, as many as catchUp says", async () => {
    const definitions = {
      "all.json": report({ ...news, catchUp: 10 }),
      "none.json": report({ ...news, catchUp: 0 }),
      "one.json": report(news),
    };
    await start(definitions);
    await service.close();
    await clock.advance(5 * MINUTE_MS);
    await start(definitions);
    const countOf = async (id: string) => (await runsOf(id)).length;
    // Each look starts what is planned in the order of the ids.
    await expect.poll(() => countOf("zz-control")).toBeGreaterThan(0);
    // The runs of a schedule start one after another.
    await expect.poll(async () => (await looks(), countOf("all"))).toBe(5);
    // The newest planned time may be recent enough to be on time.
    const onTime = await countOf("none");
    await expect.poll(async () => (await looks(), countOf("one"))).toBe(onTime + 1);
    expect(await countOf("all")).toBe(5);
  });

  it("are listed with their next times and the last one that was started, without those that are switched off", async () => {
    await start({
      "report.json": report(
        { name: "morning", cron: "30 6 * * 1-5", timeZone: "Europe/Berlin", parameters: { region: "north" } },
        { ...news, name: "off", enabled: false },
        news,
      ),
    });
    const { next } = await listed("report", "news");
    expect(await list()).toEqual([
      expect.objectContaining({ workflowId: "report", name: "morning", cron: "30 6 * * 1-5", timeZone: "Europe/Berlin" }),
      {
        workflowId: "report",
        name: "news",
        everyMs: MINUTE_MS,
        state: "new",
        paused: false,
        next: expect.any(Array),
        failures: 0,
      },
      expect.objectContaining({ workflowId: "zz-control" }),
    ]);
    expect(next).toHaveLength(5);
    await pass(1);
    expect((await listed("report", "news")).last).toBe(next[0]);
  });

  it("say how their newest run ended, count the failures in a row, and fail until a run succeeds", async () => {
    const fails = { type: "transform", with: { value: "${{ parameters.region.none }}" } };
    await start({ "report.json": { parameters, schedules: [news], nodes: { n: fails } } });
    await pass(2);
    const newest = async () => (await runsOf("report"))[0];
    await expect.poll(async () => (await listed("report", "news")).failures).toBe(2);
    expect(await listed("report", "news")).toMatchObject({
      state: "failing",
      lastEnd: { ...{ runId: (await newest()).runId, status: "failed" }, endedAt: (await newest()).completedAt },
    });
    await service.close();
    await start({ "report.json": report(news) });
    expect(await listed("report", "news")).toMatchObject({ state: "failing", failures: 2 });
    await pass(1);
    await expect.poll(async () => (await listed("report", "news")).state).toBe("ok");
    expect(await listed("report", "news")).toMatchObject({ failures: 0, lastEnd: { runId: (await newest()).runId } });
  });

  it("start nothing while they are paused, and go on when they are resumed", async () => {
    await start({ "report.json": report(news) });
    const path = "/api/workflow/report/schedules/news";
    expect((await service.call("POST", `${path}/pause`)).body).toEqual({ ok: true });
    expect(await listed("report", "news")).toMatchObject({ paused: true, next: [] });
    await pass(3);
    expect(await runsOf("report")).toEqual([]);
    expect((await service.call("POST", `${path}/resume`)).body).toEqual({ ok: true });
    const resumedAt = clock.now();
    await pass(1);
    await expect.poll(async () => (await runsOf("report")).length).toBeGreaterThan(0);
    expect((await plannedOf("report"))[0]).toBeGreaterThan(resumedAt);
  });

  it("are started by hand, as often as the caller asks", async () => {
    await start({ "report.json": report(news) });
    const path = "/api/workflow/report/schedules/news/trigger";
    const answers = [await service.call("POST", path), await service.call("POST", path)];
    expect(answers.map(({ status, body }) => [status, body.workflowId, body.status])).toEqual([
      [202, "report", "started"],
      [202, "report", "started"],
    ]);
    for (const { body } of answers) {
      const { finalOutputs, schedule } = await service.ended("report", body.runId);
      expect([finalOutputs.given.region, schedule]).toEqual(["north", { name: "news" }]);
    }
  });

  it.each([
    ["skip", (_statuses: readonly string[]) => ["running"], 1],
    ["queue", (_statuses: readonly string[]) => ["running"], 1],
    ["allow", (statuses: readonly string[]) => statuses.map(() => "running"), 3],
    ["cancel", (statuses: readonly string[]) => statuses.map((_status, at) => (at === 0 ? "running" : "cancelled")), 3],
  ])("treat a run that goes on at the next planned time as the overlap %s says", async (overlap, wanted, least) => {
    const waiting = { nodes: { n: { type: "wait", with: { for: "1d" } } } };
    await start({ "slow.json": { schedules: [{ name: "news", every: "1m", overlap }], ...waiting } });
    await pass(3);
    const statuses = async (): Promise<string[]> => (await runsOf("slow")).map(({ status }) => status);
    await expect.poll(async () => (await statuses()).length).toBeGreaterThanOrEqual(least);
    await expect
      .poll(async () => {
        const found = await statuses();
        return { found, wanted: wanted(found) };
      })
      .toSatisfy(({ found, wanted: right }) => JSON.stringify(found) === JSON.stringify(right));
  });

  it("let planned runs wait for the end of the run before, in their order, also over a restart, if they say nothing else", async () => {
    const nodes = { ask: { type: "human_gate", with: { title: "Go on?" } } };
    const definitions = { "slow.json": { schedules: [{ name: "news", cron: "* * * * *" }], nodes } };
    await start(definitions);
    await pass(1);
    const [first] = await plannedOf("slow");
    await pass(2);
    expect(await plannedOf("slow")).toEqual([first]);
    expect((await listed("slow", "news")).waiting).toBe(2);
    await service.close();
    await start(definitions);
    expect((await listed("slow", "news")).waiting).toBe(2);
    for (const waited of [1, 2]) {
      await service.call("POST", "/api/workflow/slow/schedules/news/trigger");
      const headers = { "x-execution-grant": await service.grant({ workflowId: "slow" }) };
      const open = (await runsOf("slow")).find(({ status, schedule }) => status !== "completed" && schedule.plannedAt);
      await service.until("slow", open.runId, ({ status }) => status === "waiting_human");
      const path = `/api/workflow/slow/runs/${open.runId}/gate`;
      expect((await service.call("POST", path, { decision: "approve" }, { headers })).status).toBe(200);
      await service.ended("slow", open.runId);
      await looks();
      const planned = (await runsOf("slow")).flatMap(({ schedule }) => schedule.plannedAt ?? []).toSorted();
      expect(planned.map((time) => Date.parse(time))).toEqual(
        [0, 1, 2].slice(0, waited + 1).map((at) => first! + at * MINUTE_MS),
      );
      expect((await listed("slow", "news")).waiting).toBe(waited === 1 ? 1 : undefined);
    }
  });

  it.each([
    ["queue", ["running", "failed"]],
    ["skip", ["running", "failed"]],
    ["cancel", ["failed", "cancelled", "failed"]],
  ])("count a run that resumes one of their runs as theirs, with the overlap %s", async (overlap, wanted) => {
    const nodes = {
      f: { type: "fail", with: { message: "no" } },
      hold: { type: "wait", needs: ["f"], with: { for: "1d" } },
    };
    await start({ "slow.json": { schedules: [{ name: "news", every: "1m", overlap }], nodes } });
    await pass(1);
    const { runId } = (await runsOf("slow")).at(-1);
    const { schedule } = await service.ended("slow", runId);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "slow" }) };
    const body = { idempotencyKey: "k", as: "done" };
    const resumed = await service.call("POST", `/api/workflow/slow/runs/${runId}/resume`, body, { headers });
    expect((await service.detail("slow", resumed.body.runId)).schedule).toEqual(schedule);
    const statuses = async () => (await runsOf("slow")).map(({ status }) => status);
    await pass(1);
    await expect.poll(statuses).toEqual(wanted);
  });

  it("change and end with the definition, without a restart", async () => {
    await start({ "report.json": report(news) });
    service.deploy("report.json", report({ ...news, every: "2m" }));
    await expect.poll(() => seen(({ everyMs }) => everyMs)).toEqual([2 * MINUTE_MS]);
    await looks();
    const changedAt = clock.now();
    await pass(4);
    const changed = async () => (await plannedOf("report")).filter((time) => time > changedAt);
    await expect.poll(async () => (await changed()).length).toBeGreaterThanOrEqual(2);
    expect((await changed()).map((time) => time % (2 * MINUTE_MS))).toEqual((await changed()).map(() => 0));
    service.deploy("report.json", report());
    await expect.poll(() => seen((schedule) => schedule)).toEqual([undefined]);
    await looks();
    const before = await plannedOf("report");
    await pass(2);
    expect(await plannedOf("report")).toEqual(before);
  });

  /** What the processes show of the schedule: one after another answers. Documents are watched by the same clock. */
  async function seen(read: (schedule: any) => unknown): Promise<readonly unknown[]> {
    const shown: unknown[] = [];
    for (let times = 0; times < 4; times++) {
      await looks();
      const schedule = await listed("report", "news");
      shown.push(schedule && read(schedule));
    }
    return [...new Set(shown)];
  }

  it("need the service token, and answer 404 for one that does not exist", async () => {
    await start({ "report.json": report(news, { ...news, name: "off", enabled: false }) });
    const calls = ["trigger", "pause", "resume"].map((what) => ["POST", `/api/workflow/report/schedules/news/${what}`] as const);
    for (const [method, path] of [["GET", "/api/workflow/schedules"] as const, ...calls])
      expect((await service.call(method, path, undefined, { token: "" })).status).toBe(401);
    for (const [method, path] of calls) {
      for (const wrong of [path.replace("news", "none"), path.replace("news", "off"), path.replace("report", "none")])
        expect((await service.call(method, wrong)).body.code).toBe("unknown_schedule");
    }
  });

  it("start nothing in a service without the port schedules, whose list says so", async () => {
    await start({ "report.json": report(news) }, []);
    expect(await listed("report", "news")).toMatchObject({ next: [], fault: expect.stringContaining("schedules") });
    const { status, body } = await service.call("POST", "/api/workflow/report/schedules/news/pause");
    expect([status, body.code]).toEqual([409, "schedules_unavailable"]);
  });
});
