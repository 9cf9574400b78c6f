import { defineAdapter, ports, Secret } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it, vi } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const runsOf = ({ app }: Pick<WorkflowService, "app">) =>
  app.port(ports.records).collection({
    name: "workflow-runs",
  });

const away = () => Promise.reject(new ports.RecordsUnavailable("The store is away"));
const child = {
  nodes: { a: { type: "transform", with: { value: "${{ parameters.n + 1 }}" } } },
  outputs: { n: "${{ nodes.a.output }}", secret: "${{ secrets.KEY }}" },
};
const parent = {
  nodes: { c: { type: "workflow", with: { workflow: "child", parameters: { n: 1 } } } },
  outputs: { n: "${{ nodes.c.output.n }}", length: "${{ size(nodes.c.output.secret) }}" },
};
const runtime = { secrets: { KEY: new Secret("abcdefgh") } };
const definitions = { "child.json": child, "parent.json": parent };

describe("a store that is away for a moment fails no run (open points 9)", () => {
  it("where a gate opens, and where it closes: it is shown, decided, and shown no more", async () => {
    const gated = {
      nodes: {
        ok: { type: "human_gate", with: { title: "Go on?" } },
        held: { type: "scripted", needs: ["ok"], with: { gate: "held" } },
      },
    };
    await using service = await startWorkflowService({ definitions: { "gated.json": gated } });
    const put = vi.spyOn(runsOf(service), "put").mockImplementationOnce(away);
    const runId = await service.trigger("gated");
    await service.until("gated", runId, ({ status }) => status === "waiting_human");
    put.mockImplementationOnce(away);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "gated" }) };
    await service.call("POST", `/api/workflow/gated/runs/${runId}/gate`, { decision: "approve" }, { headers });
    await expect.poll(() => service.nodes.played.length).toBe(1);
    const detail = await service.detail("gated", runId);
    expect(detail.status).toBe("running");
    expect(detail).not.toHaveProperty("humanGate");
    service.nodes.gate("held").open();
    expect((await service.ended("gated", runId)).status).toBe("completed");
  });

  it("an unexpected error ends the run, and not only the work", async () => {
    const gated = { nodes: { ok: { type: "human_gate", with: { title: "Go on?" } } } };
    await using service = await startWorkflowService({ definitions: { "gated.json": gated } });
    const read = vi.spyOn(service.app.port(ports.log), "read").mockImplementationOnce(() => {
      throw new Error("odd");
    });
    const runId = await service.trigger("gated");
    // A call may read the log, too, in a process that does not execute the run.
    await expect.poll(() => read.mock.calls.length).toBeGreaterThan(0);
    expect(await service.ended("gated", runId)).toMatchObject({ status: "failed", error: { code: "run_failed" } });
  });

  it("where a long history is written down", async () => {
    const long = { nodes: { a: { type: "transform", with: { value: "x".repeat(300_000) } } } };
    await using service = await startWorkflowService({ definitions: { "long.json": long } });
    vi.spyOn(service.app.port(ports.log), "append").mockRejectedValueOnce(new ports.LogUnavailable("The log is away"));
    expect(await service.ended("long", await service.trigger("long"))).toMatchObject({
      status: "completed",
      nodeResults: { a: { status: "completed" } },
    });
  });

  it("where a node starts another workflow", async () => {
    await using service = await startWorkflowService({ definitions, runtime });
    const engine = service.app.port(ports.engine);
    const start = engine.start.bind(engine);
    const calls = vi.spyOn(engine, "start").mockImplementation(async (...given) => {
      if (calls.mock.calls.length === 2) throw new ports.EngineUnavailable("The engine is away");
      return start(...given);
    });
    expect(await service.ended("parent", await service.trigger("parent"))).toMatchObject({ finalOutputs: { n: 2, length: 8 } });
  });

  it("also when a run reports its end to the run that started it", async () => {
    await using service = await startWorkflowService({ definitions, runtime });
    const engine = service.app.port(ports.engine);
    vi.spyOn(engine, "signal").mockRejectedValueOnce(new ports.EngineUnavailable("The engine is away"));
    expect(await service.ended("parent", await service.trigger("parent"))).toMatchObject({ finalOutputs: { n: 2, length: 8 } });
  });

  it("where history is read: the caller is told to try again", async () => {
    await using service = await startWorkflowService({ definitions, runtime });
    const runId = await service.trigger("child", { n: 1 });
    await service.ended("child", runId);
    for (const { port } of service.apps) {
      vi.spyOn(port(ports.log), "read").mockImplementation(() => {
        throw new ports.LogUnavailable("The log is away");
      });
    }
    const answer = await service.call("GET", `/api/workflow/child/runs/${runId}`);
    expect(answer).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
    for (const app of service.apps) vi.spyOn(runsOf({ app }), "get").mockImplementation(away);
    expect((await service.call("GET", "/api/workflow/child/runs")).status).toBe(503);
  });
});

describe("a kill between two lines (open points 9)", () => {
  it("between a run's end and its parent's loses nothing of what it came to", async () => {
    const first = await startWorkflowService({ definitions, runtime });
    const engine = first.app.port(ports.engine);
    const signal = vi.spyOn(engine, "signal").mockImplementation(() => new Promise(() => {}));
    const runId = await first.trigger("parent");
    await expect.poll(() => signal.mock.calls.length).toBe(1);
    await using second = await startWorkflowService({ dataDir: first.dataDir, runtime });
    expect(await second.ended("parent", runId)).toMatchObject({ finalOutputs: { n: 2, length: 8 } });
    await first.close().catch(() => {});
  });
});

describe("a run that never began (open points 8)", () => {
  it("if it is cancelled, its followers learn that", async () => {
    await using service = await startWorkflowService({ definitions, runtime });
    await Promise.all(service.apps.map((app) => app.port(ports.engine).drain(0)));
    const runId = await service.trigger("child", { n: 1 });
    const subscription = await service.events(runId);
    expect((await subscription.next())!.event).toBe("workflow:started");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "child" }) };
    expect((await service.call("POST", `/api/workflow/child/runs/${runId}/cancel`, undefined, { headers })).status).toBe(200);
    const told = await subscription.rest();
    expect(told.at(-1)).toMatchObject({ event: "workflow:complete", data: { status: "cancelled" } });
  });
});

describe("a node that does not listen to its signal (core, workflowNodes)", () => {
  it("is abandoned when its time has elapsed", async () => {
    const deaf = defineAdapter({
      name: "workflow-nodes/deaf",
      port: ports.workflowNodes,
      needs: {},
      open: (): ports.WorkflowNode => ({
        type: "deaf",
        input: v.strictObject({}),
        repeatable: true,
        run: () => new Promise(() => {}),
      }),
    })(undefined);
    const definition = { nodes: { a: { type: "deaf", timeout: "50ms" } } };
    await using service = await startWorkflowService({ definitions: { "w.json": definition }, adapters: [deaf] });
    expect(await service.ended("w", await service.trigger("w"))).toMatchObject({
      status: "failed",
      error: { code: "timeout", nodeId: "a" },
    });
  });
});
