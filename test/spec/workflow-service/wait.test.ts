import { createManualClock } from "@portico/adapters/clock/manual";
import { preferredWaitMs } from "@portico/core/kit";
import { describe, expect, it } from "vitest";
import { routesWithHeader } from "../../harness/routes-with-header.ts";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const held = { nodes: { a: { type: "scripted", with: { say: "held", gate: "held" } } }, outputs: { a: "${{ nodes.a.output }}" } };
const quick = { nodes: { a: { type: "transform", with: { value: 7 } } }, outputs: { a: "${{ nodes.a.output }}" } };
const failing = { nodes: { a: { type: "scripted", with: { say: 1, fails: 9, retryable: false } } } };
const definitions = { "quick.json": quick, "held.json": held, "failing.json": failing };
const waiting = (seconds: number) => ({ headers: { prefer: `wait=${seconds}` } });

function trigger(service: WorkflowService, id: string, options: object) {
  return service.call("POST", `/api/workflow/webhook?id=${id}`, {}, options);
}

describe("a call that starts a run, with `Prefer: wait` (RFC 7240; an extension)", () => {
  it("answers with the run and all its nodes once the run has ended", async () => {
    await using service = await startWorkflowService({ definitions });
    const answer = await trigger(service, "quick", waiting(30));
    expect(answer).toMatchObject({ status: 200, body: { workflowId: "quick", status: "completed", finalOutputs: { a: 7 } } });
    expect(answer.headers["preference-applied"]).toBe("wait=30");
    const { body, headers } = await service.call("GET", `/api/workflow/quick/runs/${answer.body.runId}`);
    expect(answer.body).toEqual(body);
    expect(headers).not.toHaveProperty("preference-applied");
  });

  it("answers with the error of a run that fails, as of any run", async () => {
    await using service = await startWorkflowService({ definitions });
    const { status, body } = await trigger(service, "failing", waiting(30));
    expect([status, body.status, body.error]).toEqual([200, "failed", expect.objectContaining({ nodeId: "a" })]);
  });

  it("answers as without the preference, and where the run is read, if the run has not ended in time", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions, clock });
    const answered = trigger(service, "held", waiting(30));
    await expect.poll(() => service.nodes.played.length).toBe(1);
    await clock.advance(29_000);
    expect(await Promise.race([answered, Promise.resolve("waits")])).toBe("waits");
    await clock.advance(1_000);
    const { status, body, headers } = await answered;
    expect(headers).not.toHaveProperty("preference-applied");
    expect([status, body]).toEqual([
      200,
      {
        ...{ runId: body.runId, workflowId: "held", status: "started" },
        location: `/api/workflow/held/runs/${body.runId}`,
      },
    ]);
    expect(await service.call("GET", body.location)).toMatchObject({ status: 200, body: { status: "running" } });
    service.nodes.gate("held").open();
  });

  it("waits for the run of its grant, also when it is sent again", async () => {
    await using service = await startWorkflowService({ definitions });
    const executionGrantId = await service.grant({ workflowId: "quick" });
    const body = { executionGrantId, idempotencyKey: "k", workflowId: "quick" };
    const first = await service.call("POST", "/api/workflow/run", body, waiting(30));
    const again = await service.call("POST", "/api/workflow/run", body, waiting(30));
    expect(first).toMatchObject({ status: 200, body: { status: "completed", finalOutputs: { a: 7 } } });
    expect(again.body).toEqual(first.body);
  });

  it("waits for a run that has the parameters of another, and for one that resumes another", async () => {
    const nodes = createScriptedNodes();
    await using service = await startWorkflowService({ definitions, nodes });
    const { body } = await trigger(service, "failing", waiting(30));
    const call = async (name: string, more: object) =>
      service.call("POST", `/api/workflow/failing/runs/${body.runId}/${name}`, more, {
        headers: { ...waiting(30).headers, "x-execution-grant": await service.grant({ workflowId: "failing" }) },
      });
    expect((await call("rerun", { idempotencyKey: "k" })).body).toMatchObject({ status: "failed", workflowId: "failing" });
    const resumed = (await call("resume", { idempotencyKey: "k", as: "done", output: 1 })).body;
    expect(resumed).toMatchObject({ status: "completed", resumes: body.runId });
  });

  it("answers at once when the service stops; the run goes on", async () => {
    await using service = await startWorkflowService({ definitions });
    const answered = trigger(service, "held", waiting(30));
    await expect.poll(() => service.nodes.played.length).toBe(1);
    for (const app of service.apps) app.surface("workflow").endEventStreams();
    expect((await answered).body).toMatchObject({ status: "started" });
    service.nodes.gate("held").open();
  });
});

describe("a read of a run with `Prefer: wait` (an extension)", () => {
  it("answers when the run has ended", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("held");
    const read = service.call("GET", `/api/workflow/held/runs/${runId}`, undefined, waiting(30));
    await expect.poll(() => service.nodes.played.length).toBe(1);
    service.nodes.gate("held").open();
    const { body, headers } = await read;
    expect(body).toMatchObject({ status: "completed", finalOutputs: { a: "held" } });
    expect(headers["preference-applied"]).toBe("wait=30");
  });

  it("answers with the run as it is when the time has passed", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions, clock });
    const runId = await service.trigger("held");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    const read = service.call("GET", `/api/workflow/held/runs/${runId}`, undefined, waiting(2));
    await expect.poll(async () => (await clock.advance(2_000), await Promise.race([read, undefined]))).toBeDefined();
    const { body, headers } = await read;
    expect(body).toMatchObject({ status: "running" });
    expect(headers).not.toHaveProperty("preference-applied");
    service.nodes.gate("held").open();
  });
});

it("the OpenAPI document names the header `Prefer` for each call that waits", () => {
  expect(routesWithHeader("Prefer")).toEqual(["rerun", "resume", "run", "start", "trigger"].map((name) => `workflows.${name}`));
});

it.each([
  ["wait=30", 30_000],
  ["respond-async, WAIT = 5", 5_000],
  ['handling=lenient; a=b, wait="7"; c', 7_000],
  ["wait=10, wait=20", 10_000],
  ["wait=100000", 55_000],
  ["wait=0", 0],
  ["wait", 0],
  ["wait=-1", 0],
  ["wait=1.5", 0],
  ["wait=soon", 0],
  ["await=3", 0],
  ["", 0],
  [undefined, 0],
])("the header `Prefer: %s` means a wait of %i milliseconds", (value, ms) => {
  expect(preferredWaitMs({ header: (name) => (name === "prefer" ? value : undefined) })).toBe(ms);
});
