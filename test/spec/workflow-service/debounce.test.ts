import { setTimeout as sleep } from "node:timers/promises";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const parameters = {
  type: "object",
  properties: {
    customer: { type: "string" },
    n: { type: "integer" },
    gate: { type: "string" },
    pin: { type: "string", writeOnly: true },
  },
};
const definition = (debounce: object, more: object = {}) => ({
  ...{ parameters, debounce, nodes: { a: { type: "transform", with: { value: "${{ parameters.n }}" } } } },
  ...{ outputs: { n: "${{ nodes.a.output }}" }, search: { parameters: ["n"] } },
  ...more,
});

let clock: ManualClock;
let service: WorkflowService;
beforeEach(() => void (clock = createManualClock()));
afterEach(() => service.close());

const start = async (debounce: object, more?: object) => {
  service = await startWorkflowService({
    ...{ clock, definitions: { "calm.json": definition(debounce, more) } },
    runtime: { secrets: { TOKEN: new Secret("a-secret-of-this-test") } },
  });
};
const trigger = (body: object, headers: Record<string, string> = {}) =>
  service.call("POST", "/api/workflow/webhook?id=calm", body, { headers });
const triggered = async (body: object): Promise<string> => (await trigger(body)).body.runId;
const runs = async (): Promise<any[]> => (await service.call("GET", "/api/workflow/calm/runs")).body.runs;
const detail = (runId: string) => service.detail("calm", runId);

async function foundBy(parameter: string): Promise<string[]> {
  const query = new URLSearchParams({ workflowId: "calm", parameter });
  const { body } = await service.call("GET", `/api/workflow/runs/search?${query}`);
  return body.runs.map((run: { runId: string }) => run.runId);
}

/** The run, once it has ended, as time passes. */
async function ended(runId: string) {
  for (;;) {
    const found = await detail(runId);
    if (found.status !== "running") return found;
    await clock.advance(250);
    await sleep(2);
  }
}

/** Resolves when the node of the run has begun, as time passes. */
async function isBegun(runId: string): Promise<void> {
  while ((await detail(runId)).nodeResults.held === undefined) {
    await clock.advance(100);
    await sleep(2);
  }
}

/** Lets waits that have ended be noticed. */
const settle = async () => {
  for (let turn = 0; turn < 10; turn++) await sleep(5);
};

describe("debounce of a workflow", () => {
  it("gives triggers that follow each other shortly one run, with the parameters of the last", async () => {
    await start({ delay: "10s" });
    const first = await trigger({ n: 1 });
    expect(first).toMatchObject({ status: 200, body: { workflowId: "calm", status: "started" } });
    expect(first.body).not.toHaveProperty("debounced");
    const { runId } = first.body;
    await clock.advance(9000);
    expect((await trigger({ n: 2 })).body).toEqual({ runId, workflowId: "calm", status: "started", debounced: true });
    await clock.advance(9000);
    expect((await trigger({ n: 3 })).body.runId).toBe(runId);
    await settle();
    expect(await detail(runId)).toMatchObject({ status: "running", queued: true, nodeResults: {} });
    const end = await ended(runId);
    expect(end).toMatchObject({ status: "completed", parameters: { n: 3 }, finalOutputs: { n: 3 } });
    expect(end).not.toHaveProperty("queued");
    expect(await foundBy("n=3")).toEqual([runId]);
    expect(await runs()).toHaveLength(1);
  });

  it("starts another run with the first trigger after the run has begun", async () => {
    await start({ delay: "1s" });
    const first = await triggered({ n: 1 });
    await ended(first);
    const second = await trigger({ n: 2 });
    expect(second.body).not.toHaveProperty("debounced");
    expect(second.body.runId).not.toBe(first);
    expect(await ended(second.body.runId)).toMatchObject({ finalOutputs: { n: 2 } });
  });

  it("joins only triggers with the same key", async () => {
    await start({ delay: "1s", key: "${{ parameters.customer }}" });
    const [one, two] = [await triggered({ customer: "one", n: 1 }), await triggered({ customer: "two", n: 2 })];
    expect(await triggered({ customer: "one", n: 3 })).toBe(one);
    expect(await ended(one)).toMatchObject({ finalOutputs: { n: 3 } });
    expect(await ended(two)).toMatchObject({ finalOutputs: { n: 2 } });
    expect(await trigger({ n: 1 })).toMatchObject({ status: 400, body: { code: "invalid_parameters" } });
  });

  it("waits no longer than `maxWait` after the first trigger", async () => {
    await start({ delay: "10s", maxWait: "25s" });
    const runId = await triggered({ n: 0 });
    let n = 0;
    for (let second = 0; second < 24; second++) {
      await clock.advance(1000);
      expect(await triggered({ n: ++n })).toBe(runId);
    }
    await clock.advance(1000);
    expect(await ended(runId)).toMatchObject({ finalOutputs: { n: 24 } });
  });

  it("gives many triggers at the same time one run", async () => {
    await start({ delay: "1s" });
    const answers = await Promise.all(Array.from({ length: 30 }, (_each, n) => trigger({ n })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
    expect(answers.filter(({ body }) => body.debounced === undefined)).toHaveLength(1);
    await ended(answers[0]!.body.runId);
  });

  it("checks the parameters of each trigger, and keeps those of the last valid one", async () => {
    await start({ delay: "1s" });
    const runId = await triggered({ n: 1 });
    expect(await trigger({ n: "two" })).toMatchObject({ status: 400, body: { code: "invalid_parameters" } });
    expect(await ended(runId)).toMatchObject({ finalOutputs: { n: 1 } });
  });

  it("answers a repeated Idempotency-Key with the same run, and does not change its parameters", async () => {
    await start({ delay: "1s" });
    const key = { "idempotency-key": "k" };
    const answers = await Promise.all(Array.from({ length: 5 }, () => trigger({ n: 1 }, key)));
    const runId = answers[0]!.body.runId;
    expect(new Set(answers.map(({ body }) => body.runId))).toEqual(new Set([runId]));
    expect(await triggered({ n: 2 })).toBe(runId);
    expect((await trigger({ n: 1 }, key)).body).toMatchObject({ runId, duplicate: true });
    expect(await ended(runId)).toMatchObject({ finalOutputs: { n: 2 } });
    expect((await trigger({ n: 1 }, key)).body).toMatchObject({ runId, duplicate: true });
  });

  it("begins a new run after the waiting one was cancelled", async () => {
    await start({ delay: "1h" });
    const runId = await triggered({ n: 1 });
    const headers = { "x-execution-grant": await service.grant({ workflowId: "calm" }) };
    const cancelled = await service.call("POST", `/api/workflow/calm/runs/${runId}/cancel`, undefined, { headers });
    expect(cancelled.status).toBe(200);
    expect(await service.ended("calm", runId)).toMatchObject({ status: "cancelled" });
    expect((await trigger({ n: 2 })).body).not.toHaveProperty("debounced");
  });

  it("lets a run that waits with an older definition begin with its own parameters", async () => {
    await start({ delay: "1s" });
    const first = await triggered({ n: 1 });
    service.deploy("calm.json", definition({ delay: "2s" }));
    const delay = async () => (await service.call("GET", "/api/workflow/calm/definition")).body.debounce.delayMs;
    while ((await delay()) !== 2000) {
      await clock.advance(100);
      await sleep(5);
    }
    const second = await triggered({ n: 2 });
    expect(await ended(first)).toMatchObject({ finalOutputs: { n: 1 } });
    expect(await ended(second)).toMatchObject({ finalOutputs: { n: 2 } });
  });

  it("takes a slot of `concurrency` when the run begins, with the key of its last parameters", async () => {
    const held = { type: "repeatable", with: { gate: "${{ parameters.gate }}" } };
    const more = { concurrency: { limit: 1, key: "${{ parameters.customer }}" }, nodes: { held }, outputs: {} };
    await start({ delay: "1s" }, more);
    const one = await triggered({ customer: "one", gate: "a" });
    await triggered({ customer: "two", gate: "a" });
    await isBegun(one);
    const other = await triggered({ customer: "two", gate: "a", n: 1 });
    expect(await triggered({ customer: "two", gate: "a", n: 2 })).toBe(other);
    // A run is found by the parameters of its last trigger once it waits for no further ones.
    while ((await foundBy("n=2")).length === 0) {
      await clock.advance(250);
      await sleep(2);
    }
    await settle();
    expect(await detail(other)).toMatchObject({ queued: true });
    await isBegun(await triggered({ customer: "one", gate: "b" }));
    service.nodes.gate("a").open();
    expect(await service.ended("calm", other)).toMatchObject({ status: "completed" });
  });

  it("fails a run that the limit refuses when it begins", async () => {
    const held = { type: "repeatable", with: { gate: "a" } };
    await start(
      { delay: "1s", key: "${{ parameters.customer }}" },
      {
        ...{ concurrency: { limit: 1, overflow: "refuse" }, nodes: { held }, outputs: {} },
      },
    );
    const one = await triggered({ customer: "one" });
    await isBegun(one);
    expect(await ended(await triggered({ customer: "two" }))).toMatchObject({
      status: "failed",
      error: { code: "workflow_busy" },
    });
  });

  it("masks a secret parameter, and opens that of the last trigger", async () => {
    await start({ delay: "1s" }, { outputs: { same: "${{ parameters.pin == 'pin-of-the-last-call' }}" } });
    const runId = await triggered({ n: 1, pin: "pin-of-the-first-call" });
    await triggered({ n: 2, pin: "pin-of-the-last-call" });
    expect(await ended(runId)).toMatchObject({ finalOutputs: { same: true }, parameters: { pin: "***" } });
  });

  it("applies to triggers only: a start with a grant begins at once", async () => {
    await start({ delay: "1h" });
    const executionGrantId = await service.grant({ workflowId: "calm" });
    const body = { executionGrantId, idempotencyKey: "k", workflowId: "calm", parameters: { n: 5 } };
    const { body: started } = await service.call("POST", "/api/workflow/run", body);
    expect(await service.ended("calm", started.runId)).toMatchObject({ finalOutputs: { n: 5 } });
  });

  it("refuses a longest wait that is shorter than the delay", async () => {
    await start({ delay: "10s", maxWait: "5s" });
    const { body } = await service.call("GET", "/api/workflows");
    expect(body.broken[0].problems[0].message).toBe("The longest wait is 1 to 1000 delays");
  });
});
