import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EventSubscription, subscribe } from "../../harness/event-subscription.ts";
import { SERVICE_TOKEN, startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const form = { type: "object", required: ["severity"], properties: { severity: { type: "integer" } } };
const definitions = {
  "triage.json": {
    name: "Triage",
    nodes: {
      bug: { type: "human_gate", with: { title: "A bug?", message: "Look", form, timeout: "1h" } },
      urgent: { type: "human_gate", with: { title: "Urgent?" } },
    },
  },
  "hidden.json": { nodes: { ok: { type: "human_gate", with: { title: "Secret" } } } },
};
const bindings = [{ id: "private", workflowId: "hidden", readers: ["another-user"] }];

describe("the list of waiting gates", () => {
  let service: WorkflowService;
  beforeAll(async () => {
    service = await startWorkflowService({ definitions, runtime: { bindings } });
  });
  afterAll(() => service?.close());

  const list = async (query = "") => service.call("GET", `/api/workflow/gates${query}`);
  const waiting = async (workflowId: string, count: number) => {
    const runId = await service.trigger(workflowId);
    await expect.poll(async () => (await list()).body.gates.filter((each: any) => each.runId === runId)).toHaveLength(count);
    return runId;
  };
  const decide = async (runId: string, nodeId: string, decision = "reject") =>
    service.call(
      "POST",
      `/api/workflow/triage/runs/${runId}/gate`,
      { decision, nodeId },
      {
        headers: { "x-execution-grant": await service.grant({ workflowId: "triage" }) },
      },
    );
  const follow = (lastEventId?: string): Promise<EventSubscription> =>
    subscribe(`${service.url}/api/workflow/gates/events`, { "x-workflow-service-token": SERVICE_TOKEN }, lastEventId);
  const cancelAll = async () => {
    const runs = new Set<string>((await list("?limit=200")).body.gates.map((each: any) => each.runId));
    for (const runId of runs)
      await service.call(
        "POST",
        `/api/workflow/triage/runs/${runId}/cancel`,
        {},
        {
          headers: { "x-execution-grant": await service.grant({ workflowId: "triage" }) },
        },
      );
    await expect.poll(async () => (await list()).body.gates).toEqual([]);
  };

  it("has every gate of a run, with its workflow and what its form needs", async () => {
    const runId = await waiting("triage", 2);
    const { gates, next } = (await list()).body;
    expect(next).toBeUndefined();
    const [bug, urgent] = gates.toSorted((a: any, b: any) => a.gate.nodeId.localeCompare(b.gate.nodeId));
    expect(bug).toEqual({
      ...{ workflowId: "triage", workflowName: "Triage", runId, startedAt: expect.any(String) },
      gate: {
        ...{ nodeId: "bug", title: "A bug?", message: "Look", form },
        ...{ requestedAt: expect.any(String), expiresAt: expect.any(String) },
      },
    });
    expect(urgent.gate).toMatchObject({ nodeId: "urgent", title: "Urgent?" });
    await decide(runId, "urgent", "approve");
    await expect.poll(async () => (await list()).body.gates.map((each: any) => each.gate.nodeId)).toEqual(["bug"]);
    await cancelAll();
  });

  it("comes in pages of runs, the newest first, and only takes known parameters", async () => {
    const runs = [await waiting("triage", 2), await waiting("triage", 2), await waiting("triage", 2)];
    const found: string[] = [];
    for (let cursor: string | undefined, pages = 0; pages < 20; pages++) {
      const { body } = await list(`?limit=1${cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
      for (const { runId } of body.gates) if (found.at(-1) !== runId) found.push(runId);
      cursor = body.next;
      if (cursor === undefined) break;
    }
    expect(found).toEqual(runs.toReversed());
    for (const query of ["?limit=0", "?limit=201", "?cursor=x", "?status=failed"])
      expect((await list(query)).body.code).toBe("invalid_request");
    await cancelAll();
  });

  it("leaves out the runs of a binding that the caller may not read", async () => {
    const executionGrantId = await service.grant({ workflowId: "hidden", bindingId: "private" });
    const started = await service.call("POST", "/api/workflow/run", {
      ...{ executionGrantId, idempotencyKey: "1", workflowId: "hidden" },
    });
    expect(started.status).toBe(200);
    await waiting("triage", 2);
    expect((await list("?limit=200")).body.gates.map((each: any) => each.workflowId)).toEqual(["triage", "triage"]);
    await cancelAll();
  });

  it("is followed: the number now, and after each gate that opens, is decided, or ends with its run", async () => {
    const events = await follow();
    expect(await events.next()).toEqual({ event: "workflow:gates_changed", data: { waiting: 0, hasMore: false } });
    expect(events.retries).toEqual([3000]);
    const runId = await waiting("triage", 2);
    const until = async (count: number) => {
      for (let event = await events.next(); event?.data.waiting !== count; event = await events.next());
    };
    await until(2);
    await decide(runId, "urgent", "approve");
    await until(1);
    await cancelAll();
    await until(0);
    events.leave();
  });

  it("is not sent again to a reader that has it, and at once to a reader that has an older one", async () => {
    const first = await follow();
    await first.next();
    first.leave();
    const [id] = first.ids;
    expect(id).toMatch(/^[\w-]{22}$/);
    const second = await follow(id);
    const next = second.next();
    await waiting("triage", 2);
    expect((await next)!.data.waiting).toBeGreaterThan(0);
    second.leave();
    const third = await follow(id);
    expect((await third.next())!.data).toEqual({ waiting: 2, hasMore: false });
    third.leave();
    await cancelAll();
  });

  it("has 64 followers in a process at most, and a place is free when one has left", async () => {
    await using one = await startWorkflowService({ definitions });
    const url = `${one.url}/api/workflow/gates/events`;
    const credentials = { "x-workflow-service-token": SERVICE_TOKEN };
    const all: EventSubscription[] = [];
    for (let count = 0; count < 64 * one.apps.length; count++) {
      const reader = await subscribe(url, credentials);
      await reader.next();
      all.push(reader);
    }
    await expect(subscribe(url, credentials)).rejects.toThrow("429");
    for (const reader of all.splice(0)) reader.leave();
    await expect
      .poll(() =>
        subscribe(url, credentials).then(
          (reader) => (reader.leave(), true),
          () => false,
        ),
      )
      .toBe(true);
  });

  it("is only for holders of the token", async () => {
    for (const path of ["/api/workflow/gates", "/api/workflow/gates/events"])
      expect((await service.call("GET", path, undefined, { token: "wrong" })).status).toBe(401);
  });
});
