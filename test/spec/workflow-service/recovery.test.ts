import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { describe, expect, it } from "vitest";
import { RUN_LIST } from "../../../plugins/src/workflow-service/runs/run-id.ts";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

/** Start `w`, wait until a node of it works, and let another process take the work over. */
async function takenOver(definition: object) {
  const own = createScriptedNodes();
  own.gate("open").open();
  const first = await startWorkflowService({ definitions: { "w.json": definition }, nodes: own });
  const runId = await first.trigger("w");
  await expect.poll(() => first.nodes.played.some(({ say }) => say === "held")).toBe(true);
  const nodes = createScriptedNodes();
  nodes.gate("held").open();
  const second = await startWorkflowService({ dataDir: first.dataDir, nodes });
  const detail = await second.ended("w", runId);
  await second.close();
  await first.close().catch(() => {});
  return { detail, first: first.nodes.played, second: nodes.played };
}

const held = { say: "held", gate: "held" };

describe("a run whose process went (open points 9; workflow.md)", () => {
  it("continues after its last finished node if the interrupted node may be repeated", async () => {
    const { detail, first, second } = await takenOver({
      nodes: {
        a: { type: "scripted", with: { say: "once" } },
        b: { type: "repeatable", needs: ["a"], with: held },
        c: { type: "transform", needs: ["b"], with: { value: "${{ nodes.a.output + nodes.b.output }}" } },
      },
      outputs: { c: "${{ nodes.c.output }}" },
    });
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { c: "onceheld" } });
    expect([...first, ...second].map(({ nodeId }) => nodeId)).toEqual(["a", "b", "b"]);
    expect(Object.keys(detail.nodeResults).sort()).toEqual(["a", "b", "c"]);
  });

  it("is interrupted where it may not, and nothing runs twice", async () => {
    const { detail, first, second } = await takenOver({
      nodes: { a: { type: "scripted", with: held }, b: { type: "transform", needs: ["a"], with: { value: 1 } } },
    });
    expect(detail).toMatchObject({ status: "interrupted", error: { code: "process_restart", nodeId: "a" } });
    expect(detail.nodeResults).toMatchObject({
      a: { status: "failed", error: { code: "process_restart" } },
      b: { status: "cancelled" },
    });
    expect([first.length, second.length]).toEqual([1, 0]);
  });

  it("believes a definition that says `idempotent`, either way", async () => {
    const yes = await takenOver({ nodes: { a: { type: "scripted", idempotent: true, with: held } } });
    expect([yes.detail.status, yes.second.length]).toEqual(["completed", 1]);
    const no = await takenOver({ nodes: { a: { type: "repeatable", idempotent: false, with: held } } });
    expect([no.detail.status, no.second.length]).toEqual(["interrupted", 0]);
  });

  it("remembers what came of map items and loop iterations that had finished", async () => {
    const { detail, first, second } = await takenOver({
      nodes: {
        m: {
          type: "map",
          with: {
            items: ["x", "y", "held"],
            concurrency: 1,
            nodes: { a: { type: "repeatable", with: { say: "${{ item }}", gate: "${{ item == 'held' ? 'held' : 'open' }}" } } },
            result: "${{ nodes.a.output }}",
          },
        },
      },
      outputs: { m: "${{ nodes.m.output }}" },
    });
    expect(detail.finalOutputs).toEqual({ m: ["x", "y", "held"] });
    expect([first.length, second.length]).toEqual([3, 1]);
  });
});

describe("a run whose definition goes beyond limits that came later", () => {
  const gated = {
    nodes: {
      ok: { type: "human_gate", with: { title: "Go on?" } },
      end: { type: "transform", needs: ["ok"], with: { value: "${{ parameters.a }}" } },
    },
    outputs: { end: "${{ nodes.end.output }}" },
  };
  const properties = Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`p${at}`, { type: "string" }]));
  const alias = `a: &a ${"x".repeat(5000)}`;

  it.each<[string, string]>([
    ["values of schemas", JSON.stringify({ ...gated, parameters: { properties } })],
    ["a form with a long pattern", withForm({ properties: { a: { pattern: "a".repeat(1001) } } })],
    ["a form whose reference leads back to where it stands", withForm({ $defs: { a: { not: { $ref: "#/$defs/a" } } } })],
    [
      "expressions",
      JSON.stringify({ ...gated, outputs: { ...gated.outputs, many: Array.from({ length: 5001 }, () => "${{ 1 }}") } }),
    ],
    [
      "characters of aliases",
      `${JSON.stringify(gated).slice(0, -1)}, "parameters": {\n  ${alias},\n  b: [${"*a, ".repeat(1000)}]\n}}`,
    ],
  ])("ends as it began: %s", async (_what, text) => {
    const first = await startWorkflowService({ definitions: { "w.json": gated } });
    const runId = await first.trigger("w", { a: "kept" });
    await first.until("w", runId, ({ status }) => status === "waiting_human");
    // As an earlier version stored it: this one does not accept it.
    const stored = first.app.port(ports.records).collection<{ text: string }>({
      name: "workflow-definitions",
      indexes: { by_use: ["usedUntil"] },
    });
    for (const { id, value } of (await stored.query({})).items) await stored.put(id, { ...value, text });
    await first.app.close();
    await using second = await startWorkflowService({ dataDir: first.dataDir, definitions: { "w.json": text } });
    expect(second.telemetry.lines.map(({ message }) => message)).toContain("A workflow definition cannot be used");
    const headers = { "x-execution-grant": await second.grant({ workflowId: "w" }) };
    await second.until("w", runId, ({ status }) => status === "waiting_human" || status === "interrupted");
    const answer = await second.call("POST", `/api/workflow/w/runs/${runId}/gate`, { decision: "approve" }, { headers });
    expect(answer.status).toBe(200);
    expect(await second.ended("w", runId)).toMatchObject({ status: "completed", finalOutputs: { end: "kept" } });
    await first.close().catch(() => {});
  });

  function withForm(form: object): string {
    const { ok, end } = gated.nodes;
    return JSON.stringify({ ...gated, nodes: { ok: { ...ok, with: { ...ok.with, form } }, end } });
  }
});

describe("a standby process that takes the work over when the owner's lease has expired", () => {
  const leaseMs = 15_000;
  const definitions = { "w.json": { nodes: { a: { type: "scripted", with: { say: "held", gate: "held" } } } } };

  it("continues the runs, and settles what the owner left between two commits", async () => {
    const first = await startWorkflowService({ definitions, clock: createManualClock(), engine: { owner: "one", leaseMs } });
    const runId = await first.trigger("w");
    const clock = createManualClock();
    const second = await startWorkflowService({ dataDir: first.dataDir, clock, engine: { owner: "two", leaseMs } });
    const { instance } = second.app.port(workflowRuntime);
    // Of these runs only the records were written; the one that is its own is not lost, but not accepted yet.
    await leave(second, runId, { runId: "wrun_left" });
    await leave(second, runId, { runId: "wrun_a_own", instance });
    const status = async (id: string) => (await second.detail("w", id)).status;
    await clock.advance(leaseMs - 1);
    await expect(second.trigger("w")).rejects.toThrow("workflow_owner_fenced");
    expect([await status("wrun_left"), await status(runId)]).toEqual(["running", "running"]);
    await clock.advance(2);
    expect(await second.ended("w", "wrun_left")).toMatchObject({ status: "interrupted", error: { code: "lost" } });
    expect(await second.ended("w", runId)).toMatchObject({ status: "interrupted", error: { code: "process_restart" } });
    expect(await status("wrun_a_own")).toBe("running");
    expect(second.telemetry.lines.filter(({ message }) => message.includes("earlier process"))).toEqual([]);
    await second.close();
    await first.close().catch(() => {});
  });

  /** The record of another run, under another id, and nothing else. */
  async function leave({ app }: WorkflowService, from: string, given: { readonly runId: string; readonly instance?: string }) {
    const records = app.port(ports.records);
    const runs = records.collection({ name: "workflow-runs" });
    const keys = records.collection({
      name: "workflow-run-list",
      indexes: RUN_LIST,
    });
    await records.batch([
      runs.write.put(given.runId, { ...(await runs.get(from))!.value, ...given }),
      keys.write.put(given.runId, (await keys.get(from))!.value),
      records.collection({ name: "workflow-open-runs" }).write.put(given.runId, {}),
    ]);
  }
});
