import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { describe, expect, it, vi } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const form = {
  type: "object",
  required: ["severity"],
  properties: { severity: { type: "integer" } },
  additionalProperties: false,
};
const gated = {
  parameters: { type: "object", properties: { what: { type: "string", default: "this" } } },
  nodes: {
    ok: { type: "human_gate", with: { title: "Go on?", message: "About ${{ parameters.what }}", form } },
    done: { type: "transform", needs: ["ok"], with: { value: "${{ nodes.ok.output.values.severity }}" } },
  },
  outputs: { severity: "${{ nodes.done.output }}", decision: "${{ nodes.ok.output.decision }}" },
};
const definitions = { "gated.json": gated, "other.json": gated };

async function waiting(service: WorkflowService, parameters: object = { what: "a bug" }) {
  const runId = await service.trigger("gated", parameters);
  // In a cluster, another process learns of started nodes up to a quarter of a second later.
  const isShown = ({ status, nodeResults }: any) => status === "waiting_human" && nodeResults.ok !== undefined;
  const detail = await service.until("gated", runId, isShown);
  const path = `/api/workflow/gated/runs/${runId}`;
  const decide = async (body: object, grant?: string) =>
    service.call("POST", `${path}/gate`, body, {
      headers: { "x-execution-grant": grant ?? (await service.grant({ workflowId: "gated" })) },
    });
  return { runId, detail, path, decide };
}

describe("a gate (open points 8; workflow.md)", () => {
  it("is shown in detail, list and summary while it waits", async () => {
    await using service = await startWorkflowService({ definitions });
    const { runId, detail } = await waiting(service);
    expect(detail.humanGate).toEqual({
      nodeId: "ok",
      title: "Go on?",
      message: "About a bug",
      form,
      requestedAt: expect.any(String),
    });
    expect(detail.nodeResults.ok).toMatchObject({ type: "human_gate", status: "waiting" });
    const { body } = await service.call("GET", "/api/workflow/gated/runs");
    expect(body.runs).toMatchObject([{ runId, status: "waiting_human" }]);
    const { workflows } = (await service.call("GET", "/api/workflows")).body;
    expect(workflows[0].lastRun.status).toBe("waiting_human");
  });

  it("is shown with what came before it, whichever process of a cluster is asked", async () => {
    const before = { type: "transform", with: { value: "seen" } };
    const after = { nodes: { before, ok: { ...gated.nodes.ok, needs: ["before"] } }, parameters: gated.parameters };
    await using service = await startWorkflowService({ definitions: { "gated.json": after } });
    const { runId } = await waiting(service);
    const details = await Promise.all(Array.from({ length: 6 }, () => service.detail("gated", runId)));
    for (const { parameters, nodeResults } of details) {
      expect(parameters).toMatchObject({ what: "a bug" });
      expect(nodeResults).toMatchObject({ before: { status: "completed", outputs: "seen" }, ok: { status: "waiting" } });
    }
  });

  it("is approved with a grant and a form, and the run continues with the values", async () => {
    await using service = await startWorkflowService({ definitions });
    const { runId, decide } = await waiting(service);
    const answer = await decide({ decision: "approve", comment: "fine", values: { severity: 3 } });
    expect(answer).toMatchObject({ status: 200, body: { runId, nodeId: "ok", decision: "approve", accepted: true } });
    const detail = await service.ended("gated", runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { severity: 3, decision: "approve" } });
    expect(detail).not.toHaveProperty("humanGate");
    expect(detail.nodeResults.ok.outputs).toEqual({
      ...{ decision: "approve", values: { severity: 3 }, comment: "fine", decidedAt: expect.any(String) },
      decidedBy: expect.objectContaining({ role: "grant" }),
    });
  });

  it("is decided by a reader of its event at once: the event comes after the record", async () => {
    await using service = await startWorkflowService({ definitions });
    const records = service.app.port(ports.records).collection({ name: "workflow-runs" });
    const decided = Promise.withResolvers<void>();
    const put = records.put.bind(records);
    // A slow store. An event that came before the record would be answered meanwhile.
    vi.spyOn(records, "put").mockImplementationOnce(async (...given) => {
      await Promise.race([decided.promise, new Promise((resolve) => setTimeout(resolve, 200))]);
      return put(...given);
    });
    const headers = { "x-execution-grant": await service.grant({ workflowId: "gated" }) };
    const runId = await service.trigger("gated");
    const subscription = await service.events(runId);
    while ((await subscription.next())!.event !== "workflow:human_gate");
    const body = { decision: "approve", values: { severity: 1 } };
    const answer = await service.call("POST", `/api/workflow/gated/runs/${runId}/gate`, body, { headers });
    decided.resolve();
    expect(answer.status).toBe(200);
    expect((await subscription.rest()).at(-1)).toMatchObject({ event: "workflow:complete", data: { status: "completed" } });
  });

  it("that is rejected fails the run, unless a node needs the rejection", async () => {
    const needed = {
      parameters: gated.parameters,
      nodes: { ok: gated.nodes.ok, no: { type: "transform", needs: ["ok.reject"], with: { value: "no" } } },
    };
    await using service = await startWorkflowService({ definitions: { "gated.json": gated, "needed.json": needed } });
    const { runId, decide } = await waiting(service);
    expect((await decide({ decision: "reject" })).status).toBe(200);
    expect(await service.ended("gated", runId)).toMatchObject({ status: "failed", error: { code: "rejected", nodeId: "ok" } });

    const other = await service.trigger("needed");
    await service.until("needed", other, ({ status }) => status === "waiting_human");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "needed" }) };
    await service.call("POST", `/api/workflow/needed/runs/${other}/gate`, { decision: "reject" }, { headers });
    expect(await service.ended("needed", other)).toMatchObject({
      status: "completed",
      nodeResults: { no: { status: "completed" } },
    });
  });

  it("refuses values that do not match its form, with their places, and continues to wait", async () => {
    await using service = await startWorkflowService({ definitions });
    const { decide, path } = await waiting(service);
    const answer = await decide({ decision: "approve", values: { severity: "high" } });
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid_values", details: { values: [{ path: "/severity" }] } } });
    expect((await decide({ decision: "approve" })).body.details.values).toMatchObject([{ path: "/severity" }]);
    expect((await service.call("GET", path)).body.status).toBe("waiting_human");
  });

  it.each([
    ["no grant", async () => undefined],
    ["something that is none", async () => "grant_e30.c2lnbmF0dXJl"],
    ["another workflow's", (service: WorkflowService) => service.grant({ workflowId: "other" })],
    [
      "a changed one",
      async (service: WorkflowService) =>
        (await service.grant({ workflowId: "gated" })).replace(/.$/, (last) => (last === "A" ? "B" : "A")),
    ],
  ])("is not decided with %s", async (_what, make) => {
    await using service = await startWorkflowService({ definitions });
    const { path } = await waiting(service);
    const grant = await make(service);
    const headers: Record<string, string> = grant === undefined ? {} : { "x-execution-grant": grant };
    const answer = await service.call("POST", `${path}/gate`, { decision: "approve", values: { severity: 1 } }, { headers });
    expect(answer).toMatchObject({ status: 403, body: { error: "execution_grant_invalid" } });
    const cancelled = await service.call("POST", `${path}/cancel`, undefined, { headers });
    expect(cancelled.status).toBe(403);
  });

  it("a grant that has expired is refused", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions, clock });
    const { decide } = await waiting(service);
    const grant = await service.grant({ workflowId: "gated", ttlMs: 60_000 });
    await clock.advance(60_000);
    expect((await decide({ decision: "reject" }, grant)).status).toBe(403);
  });

  it("is decided once: the same again is the same, the opposite is 409", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "gated.json": {
          parameters: gated.parameters,
          nodes: {
            ...gated.nodes,
            hold: { type: "repeatable", needs: ["ok"], with: { gate: "hold" } },
            second: { type: "human_gate", needs: ["hold"], with: { title: "Again?" } },
          },
        },
      },
    });
    const { decide, runId } = await waiting(service, {});
    const both = await Promise.all([decide({ decision: "approve", values: { severity: 1 } }), decide({ decision: "reject" })]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    service.nodes.gate("hold").open();
    await service.until("gated", runId, ({ status }) => status !== "running");
  });

  it("of two that approve with other values the second is told so", async () => {
    await using service = await startWorkflowService({ definitions });
    const { decide, runId } = await waiting(service);
    const approvals = await Promise.all([1, 2].map((severity) => decide({ decision: "approve", values: { severity } })));
    expect(approvals.map(({ status }) => status).sort()).toEqual([200, 409]);
    const severity = approvals[0]!.status === 200 ? 1 : 2;
    expect((await service.ended("gated", runId)).finalOutputs.severity).toBe(severity);
  });

  it("409 for a run that waits at no gate, 404 for an unknown run and for another workflow's run", async () => {
    await using service = await startWorkflowService({
      definitions: { ...definitions, "plain.json": { nodes: { a: { type: "transform", with: { value: 1 } } } } },
    });
    const runId = await service.trigger("plain");
    await service.ended("plain", runId);
    const call = async (workflowId: string, run: string) =>
      service.call(
        "POST",
        `/api/workflow/${workflowId}/runs/${run}/gate`,
        { decision: "approve" },
        { headers: { "x-execution-grant": await service.grant({ workflowId }) } },
      );
    expect((await call("plain", runId)).status).toBe(409);
    expect((await call("plain", "wrun_none")).status).toBe(404);
    expect((await call("gated", runId)).status).toBe(404);
  });

  it("without a decision ends as onTimeout says; the run's timeout is paused during the wait", async () => {
    const clock = createManualClock();
    const timed = {
      settings: { timeout: "10m" },
      nodes: {
        ok: { type: "human_gate", with: { title: "Go on?", timeout: "1h", onTimeout: "approve" } },
        done: { type: "transform", needs: ["ok"], with: { value: "${{ nodes.ok.output.decision }}" } },
      },
      outputs: { decision: "${{ nodes.done.output }}" },
    };
    await using service = await startWorkflowService({ definitions: { "gated.json": timed }, clock });
    const { runId, detail } = await waiting(service, {});
    expect(Date.parse(detail.humanGate.expiresAt) - Date.parse(detail.humanGate.requestedAt)).toBe(3600_000);
    await clock.jump(1800_000);
    expect((await service.detail("gated", runId)).status).toBe("waiting_human");
    await clock.jump(1800_000);
    expect(await service.ended("gated", runId)).toMatchObject({ status: "completed", finalOutputs: { decision: "approve" } });
  });

  it("survives a restart, and is decided after it", async () => {
    const first = await startWorkflowService({ definitions });
    const { path, runId } = await waiting(first);
    const { dataDir } = first;
    const copy = await startWorkflowService({ dataDir });
    await first.close().catch(() => {});
    const headers = { "x-execution-grant": await copy.grant({ workflowId: "gated" }) };
    expect((await copy.call("GET", path)).body).toMatchObject({ status: "waiting_human", humanGate: { nodeId: "ok" } });
    const answer = await copy.call("POST", `${path}/gate`, { decision: "approve", values: { severity: 9 } }, { headers });
    expect(answer.status).toBe(200);
    expect(await copy.ended("gated", runId)).toMatchObject({ status: "completed", finalOutputs: { severity: 9 } });
    await copy.close();
  });
});

describe("cancelling (open points 8)", () => {
  it("ends the run as cancelled, whether it waits or works, once", async () => {
    await using service = await startWorkflowService({
      definitions: { ...definitions, "work.json": { nodes: { a: { type: "scripted", with: { gate: "never" } } } } },
    });
    const gate = await waiting(service);
    const work = await service.trigger("work");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    for (const [workflowId, runId] of [
      ["gated", gate.runId],
      ["work", work],
    ] as const) {
      const headers = { "x-execution-grant": await service.grant({ workflowId }) };
      const path = `/api/workflow/${workflowId}/runs/${runId}/cancel`;
      expect(await service.call("POST", path, undefined, { headers })).toMatchObject({
        status: 200,
        body: { runId, accepted: true },
      });
      const detail = await service.ended(workflowId, runId);
      expect(detail).toMatchObject({ status: "cancelled", error: { code: "cancelled" } });
      expect(detail).not.toHaveProperty("humanGate");
      expect((await service.call("POST", path, undefined, { headers })).status).toBe(409);
    }
    expect(service.nodes.played[0]?.stopped).toBeDefined();
  });

  it("takes the runs with it that the run started", async () => {
    const parent = { nodes: { c: { type: "workflow", with: { workflow: "gated" } } } };
    await using service = await startWorkflowService({ definitions: { ...definitions, "parent.json": parent } });
    const runId = await service.trigger("parent");
    const child = async () => (await service.call("GET", "/api/workflow/gated/runs")).body.runs[0];
    await expect.poll(async () => (await child())?.status).toBe("waiting_human");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "parent" }) };
    await service.call("POST", `/api/workflow/parent/runs/${runId}/cancel`, undefined, { headers });
    expect((await service.ended("parent", runId)).status).toBe("cancelled");
    await expect.poll(async () => (await child()).status).toBe("cancelled");
  });
});
