import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { type App, ports } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { describe, expect, it, vi } from "vitest";
import { RUN_LIST } from "../../../plugins/src/workflow-service/runs/run-id.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const HOUR = 3_600_000;
const quick = { nodes: { a: { type: "transform", with: { value: 1 } }, b: { type: "transform", with: { value: 2 } } } };
const gated = {
  nodes: { ok: { type: "human_gate", with: { title: "Go on?" } }, end: { type: "transform", needs: ["ok"], with: { value: 1 } } },
};
const definitions = { "quick.json": quick, "gated.json": gated };

/** A service that keeps runs for two hours, with a clock that does not advance. */
async function start(options: WorkflowServiceOptions = {}) {
  const clock = options.clock ?? createManualClock();
  const service = await startWorkflowService({ definitions, runtime: { keepRuns: "2h" }, ...options, clock });
  return Object.assign(service, { clock });
}

/** Lets time pass, and what is done every hour be done then. */
const pass = async ({ app, clock }: { readonly app: App; readonly clock: ManualClock }, hours: number) => {
  await clock.jump(hours * HOUR);
  await app.port(workflowRuntime).sweep(new AbortController().signal);
};
/** The same stores, so much later, under another process. */
const later = async (service: Awaited<ReturnType<typeof start>>, hours: number, options: WorkflowServiceOptions = {}) => {
  const startAt = new Date(service.clock.now() + hours * HOUR).toISOString();
  await service.app.close();
  const next = await start({ ...options, clock: createManualClock({ startAt }), dataDir: service.dataDir });
  return Object.assign(next, {
    async [Symbol.asyncDispose]() {
      await next.close();
      await service.close().catch(() => {});
    },
  });
};
const INDEXES: Readonly<Record<string, ports.CollectionSpec["indexes"]>> = {
  "workflow-run-list": RUN_LIST,
  "workflow-bound-runs": { by_binding: ["bindingId", "startedAt"] },
  "workflow-definitions": { by_use: ["usedUntil"] },
};
const collection = <T extends object>({ app }: WorkflowService, name: string) => {
  const indexes = INDEXES[name];
  return app.port(ports.records).collection<T>({ name, ...(indexes && { indexes }) });
};
const storedIn = async (service: WorkflowService, name: string) =>
  (await collection(service, name).query({ limit: 1000 })).items.map(({ id }) => id);
/** Of stored definitions, the one first that is unused longest. */
const namesOf = async (service: WorkflowService) => {
  const { items } = await collection<{ document: string; text: string }>(service, "workflow-definitions").query({
    order: { by: "usedUntil", direction: "ascending" },
  });
  return items.map(({ value }) => JSON.parse(value.text).name ?? value.document.replace(".json", ""));
};
const ledgerLength = (service: WorkflowService, runId: string) => service.app.port(ports.log).count(`workflow-run:${runId}`);
const listed = async (service: WorkflowService, workflowId: string): Promise<string[]> =>
  (await service.call("GET", `/api/workflow/${workflowId}/runs`)).body.runs.map(({ runId }: { runId: string }) => runId);
const ended = async (service: WorkflowService, workflowId: string, parameters?: object) => {
  const runId = await service.trigger(workflowId, parameters);
  await service.ended(workflowId, runId);
  return runId;
};
const decide = async (service: WorkflowService, runId: string) => {
  const headers = { "x-execution-grant": await service.grant({ workflowId: "gated" }) };
  const answer = await service.call("POST", `/api/workflow/gated/runs/${runId}/gate`, { decision: "approve" }, { headers });
  expect(answer.status).toBe(200);
};
const waiting = async (service: WorkflowService) => {
  const runId = await service.trigger("gated");
  await service.until("gated", runId, ({ status }) => status === "waiting_human");
  return runId;
};

describe("runs that ended long ago (`keepRuns`)", () => {
  it("stay while a run that resumes them is open, and the definition stays, too", async () => {
    const strict = { nodes: { ok: gated.nodes.ok } };
    await using service = await start({ definitions: { "gated.json": strict } });
    const runId = await waiting(service);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "gated", ttlMs: 24 * HOUR }) };
    const post = (path: string, body: object) => service.call("POST", `/api/workflow/gated/runs/${path}`, body, { headers });
    await post(`${runId}/gate`, { decision: "reject" });
    expect((await service.ended("gated", runId)).status).toBe("failed");
    service.deploy("gated.json", quick);
    const { body } = await post(`${runId}/resume`, { idempotencyKey: "k" });
    await service.until("gated", body.runId, ({ status }) => status === "waiting_human");
    await pass(service, 12);
    expect(new Set(await listed(service, "gated"))).toEqual(new Set([body.runId, runId]));
    expect((await post(`${body.runId}/gate`, { decision: "approve" })).status).toBe(200);
    expect(await service.ended("gated", body.runId)).toMatchObject({ status: "completed", nodeResults: { ok: {} } });
    await pass(service, 1);
    expect(await listed(service, "gated")).toEqual([body.runId]);
  });

  it("go with all that belongs to them, so long after their end, and not their beginning", async () => {
    await using service = await start();
    const long = await waiting(service);
    const old = await ended(service, "quick");
    await pass(service, 1.5);
    const young = await ended(service, "quick");
    await decide(service, long);
    await service.ended("gated", long);
    expect(await ledgerLength(service, old)).toBe(1);

    await pass(service, 1);
    expect(await listed(service, "quick")).toEqual([young]);
    expect((await service.call("GET", `/api/workflow/quick/runs/${old}`)).status).toBe(404);
    expect((await service.call("GET", `/api/workflow/events?runId=${old}`)).status).toBe(404);
    expect(await listed(service, "gated")).toEqual([long]);
    expect(Object.keys((await service.detail("gated", long)).nodeResults)).toEqual(["ok", "end"]);

    // A reader of its history has finished by the next time.
    await pass(service, 2);
    expect(await ledgerLength(service, old)).toBe(0);
    expect(await storedIn(service, "workflow-runs")).toEqual([]);
    await pass(service, 1);
    expect(await storedIn(service, "workflow-removed-runs")).toEqual([]);
    expect(await ledgerLength(service, long)).toBe(0);
    expect(service.telemetry.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("go by themselves, hour by hour", async () => {
    await using service = await start();
    await ended(service, "quick");
    const left = async () => {
      await service.clock.jump(HOUR);
      return listed(service, "quick");
    };
    await expect.poll(left).toEqual([]);
  });

  it("stay for ever where nothing is said", async () => {
    const first = await start({ runtime: {} });
    const runId = await ended(first, "quick");
    await using service = await later(first, 10 * 365 * 24, { runtime: {} });
    await pass(service, 0);
    expect(await listed(service, "quick")).toEqual([runId]);
  });

  it("are never removed before they end, however long they wait", async () => {
    await using service = await start();
    const runId = await waiting(service);
    await ended(service, "quick");
    await pass(service, 3);
    expect(await listed(service, "quick")).toEqual([]);
    expect(await listed(service, "gated")).toEqual([runId]);
    await decide(service, runId);
    expect(await service.ended("gated", runId)).toMatchObject({ status: "completed" });
  });

  it("go from the lists of their tasks, too", async () => {
    const bindings = [{ id: "b1", workflowId: "quick", boardId: "B" }];
    await using service = await start({ runtime: { bindings, keepRuns: "2h" } });
    const executionGrantId = await service.grant({ workflowId: "quick", bindingId: "b1" });
    const body = { executionGrantId, idempotencyKey: "1", workflowId: "quick" };
    const { runId } = (await service.call("POST", "/api/workflow/run", body)).body;
    await service.ended("quick", runId);
    expect(await storedIn(service, "workflow-bound-runs")).toEqual([runId]);
    await pass(service, 2.5);
    expect(await storedIn(service, "workflow-bound-runs")).toEqual([]);
  });

  it("stay while the run that started them continues", async () => {
    const parent = {
      nodes: {
        child: { type: "workflow", with: { workflow: "quick" } },
        ok: { type: "human_gate", needs: ["child"], with: { title: "Go on?" } },
      },
    };
    await using service = await start({ definitions: { ...definitions, "gated.json": parent } });
    const runId = await waiting(service);
    const [child] = await listed(service, "quick");
    await ended(service, "quick");
    expect(await listed(service, "quick")).toHaveLength(2);
    await pass(service, 2.5);
    expect(await listed(service, "quick")).toEqual([child]);
    await decide(service, runId);
    await service.ended("gated", runId);
    await pass(service, 0);
    expect(await listed(service, "quick")).toEqual([]);
  });

  it("go however many there are, while the newer ones stay", async () => {
    await using service = await start();
    const count = 230;
    const all = await Promise.all(Array.from({ length: count }, () => service.trigger("quick")));
    await expect.poll(async () => (await storedIn(service, "workflow-open-runs")).length).toBe(0);
    await pass(service, 1);
    const young = await ended(service, "quick");
    const batch = vi.spyOn(service.app.port(ports.records), "batch");
    const swept = pass(service, 1.5);
    // Runs begin and end meanwhile.
    const during = await ended(service, "quick");
    await swept;
    expect(await listed(service, "quick")).toEqual([during, young]);
    const removals = batch.mock.calls.map(
      ([writes]) => writes.filter((write) => write.collection === "workflow-runs" && write.value === undefined).length,
    );
    expect(Math.max(...removals)).toBe(50);
    await pass(service, 0);
    const left = await Promise.all(all.map((runId) => ledgerLength(service, runId)));
    expect(left.filter((length) => length > 0)).toEqual([]);
  });
});

describe("a removal that is cut short", () => {
  it("at any write leaves each run whole or gone, and the next process finishes it", async () => {
    for (let cut = 1, isCut = true; isCut; cut++) {
      const first = await start();
      const runIds = [await ended(first, "quick"), await ended(first, "quick")];
      isCut = await sweepUpTo(first, cut);
      await expectWhole(first, runIds);
      // What was cut is killed: the next process takes over.
      const startAt = new Date(first.clock.now()).toISOString();
      const second = await start({ clock: createManualClock({ startAt }), dataDir: first.dataDir });
      await expectWhole(second, runIds);
      await pass(second, 0);
      await pass(second, 0);
      for (const name of ["workflow-runs", "workflow-run-list", "workflow-removed-runs"]) {
        expect(await storedIn(second, name)).toEqual([]);
      }
      for (const runId of runIds) expect(await ledgerLength(second, runId)).toBe(0);
      await second.close();
      await first.close().catch(() => {});
    }
  });

  /** Until all that is old is gone, or this write is refused, as is every one behind it; answers whether one was. */
  async function sweepUpTo(service: WorkflowService & { readonly clock: ManualClock }, cut: number) {
    let writes = 0;
    const refuse = (target: any, method: string) => {
      const real = target[method].bind(target);
      vi.spyOn(target, method).mockImplementation((...given: unknown[]) =>
        ++writes < cut ? real(...given) : Promise.reject(new ports.RecordsUnavailable("Killed")),
      );
    };
    refuse(service.app.port(ports.records), "batch");
    refuse(service.app.port(ports.log), "remove");
    await service.clock.jump(3 * HOUR);
    for (let sweeps = 0; sweeps < 2; sweeps++) await pass(service, 0);
    return writes >= cut;
  }

  async function expectWhole(service: WorkflowService, runIds: readonly string[]) {
    const shown = await listed(service, "quick");
    for (const runId of runIds) {
      const { status, body } = await service.call("GET", `/api/workflow/quick/runs/${runId}`);
      expect([status, shown.includes(runId)]).toEqual(status === 200 ? [200, true] : [404, false]);
      if (status === 200) expect(Object.keys(body.nodeResults)).toEqual(["a", "b"]);
    }
  }
});

describe("what runs were started with", () => {
  const deployed = async (service: Awaited<ReturnType<typeof start>>, name: string) =>
    expect
      .poll(async () => {
        // Changes of files are looked at when they have settled.
        await service.clock.advance(1000);
        return (await service.call("GET", "/api/workflows")).body.workflows.map((one: { name: string }) => one.name);
      })
      .toContain(name);
  it("goes when no run uses it that there is, and stays while it may be used", async () => {
    const first = await start();
    await ended(first, "quick");
    first.deploy("quick.json", { ...quick, name: "Second" });
    await deployed(first, "Second");
    await ended(first, "quick");
    expect(await namesOf(first)).toEqual(["quick", "Second"]);
    // The same process goes on with the second.
    await pass(first, 25);
    await ended(first, "quick");
    await using second = await later(first, 35, { definitions: {} });
    await pass(second, 0);
    expect(await namesOf(second)).toEqual(["Second"]);
    await using third = await later(second, 100, { definitions: {} });
    await pass(third, 0);
    expect(await namesOf(third)).toEqual([]);
    // It is deployed still, and kept anew for the next run.
    await ended(third, "quick");
    expect(await namesOf(third)).toEqual(["Second"]);
  });

  it("goes when its own runs have gone, also while an older run of the workflow waits", async () => {
    await using service = await start();
    await waiting(service);
    service.deploy("gated.json", { ...quick, name: "Second" });
    await deployed(service, "Second");
    await ended(service, "gated");
    expect(await namesOf(service)).toEqual(["gated", "Second"]);
    await pass(service, 47);
    expect(await namesOf(service)).toEqual(["gated", "Second"]);
    await pass(service, 2);
    expect(await namesOf(service)).toEqual(["gated"]);
    service.deploy("gated.json", gated);
    await deployed(service, "gated");
    const [open] = await listed(service, "gated");
    await decide(service, open!);
    expect(await service.ended("gated", open!)).toMatchObject({ status: "completed", nodeResults: { end: { outputs: 1 } } });
  });

  it("stays for a waiting run, also if the file changes or is removed, and after a restart", async () => {
    const first = await start();
    const runId = await waiting(first);
    first.deploy("gated.json", { ...gated, name: "Second", nodes: { other: { type: "transform", with: { value: 1 } } } });
    await deployed(first, "Second");
    await using second = await later(first, 100, { definitions: {} });
    await pass(second, 0);
    await decide(second, runId);
    expect(await second.ended("gated", runId)).toMatchObject({ status: "completed", nodeResults: { end: { outputs: 1 } } });
  });
});

it("decisions of gates go with their runs, where the runs' ends did not take them along", async () => {
  await using service = await start();
  const [runId, open] = [await ended(service, "quick"), await waiting(service)];
  const decisions = collection(service, "workflow-gates");
  for (const id of [runId, open])
    await decisions.put(`${id}:later gate`, { decision: "approve", decidedAt: "2030-01-01T00:00:00Z" });
  await pass(service, 0);
  expect(await storedIn(service, "workflow-gates")).toEqual([`${open}:later gate`]);
});
