import { setTimeout as wait } from "node:timers/promises";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const HOUR = 60 * 60_000;

async function approve(service: WorkflowService, workflowId: string, runId: string, more: object = {}) {
  const headers = { "x-execution-grant": await service.grant({ workflowId }) };
  const body = { decision: "approve", ...more };
  return service.call("POST", `/api/workflow/${workflowId}/runs/${runId}/gate`, body, { headers });
}

/**
 * Let time pass until something is so. What waits may set its next timer only after the time has passed, and then waits from there on:
 * what is not so after two seconds gets another minute, and so on. While the run waits for a person, its timeout is stopped: `more` may be long then.
 */
async function pass(clock: ManualClock, ms: number, isSo: () => Promise<boolean>, more = 60_000): Promise<void> {
  await clock.advance(ms);
  for (let looks = 1; !(await isSo()); looks++) {
    await wait(20);
    if (looks % 100 === 0) await clock.advance(more);
  }
}

const gated = {
  settings: { timeout: "30m" },
  nodes: {
    ok: { type: "human_gate", with: { title: "Go on?" } },
    after: { type: "wait", needs: ["ok"], with: { for: "20m" } },
    again: { type: "human_gate", needs: ["after"], with: { title: "Really?" } },
    done: { type: "transform", needs: ["again"], with: { value: "done" } },
  },
  outputs: { done: "${{ nodes.done.output }}" },
};

describe("the time of a run (workflow.md: waiting for a person is not counted)", () => {
  it("is paused at gates without limit, also if another process continues the run", async () => {
    const clock = createManualClock();
    const folder = temporaryFolder();
    const first = await startWorkflowService({ definitions: { "w.json": gated }, clock, dataDir: folder.path });
    const runId = await first.trigger("w");
    await first.until("w", runId, ({ status }) => status === "waiting_human");
    await clock.jump(3 * HOUR);
    await first.close();

    await using second = await startWorkflowService({ dataDir: folder.path, clock });
    await clock.jump(HOUR);
    expect((await second.detail("w", runId)).status).toBe("waiting_human");
    expect((await approve(second, "w", runId, { nodeId: "ok" })).status).toBe(200);
    await second.until("w", runId, ({ nodeResults }) => nodeResults.after?.status === "running");
    await pass(clock, 20 * 60_000, async () => (await second.detail("w", runId)).humanGate?.nodeId === "again");
    await clock.jump(5 * HOUR);
    expect((await approve(second, "w", runId, { nodeId: "again" })).status).toBe(200);
    expect(await second.ended("w", runId)).toMatchObject({ status: "completed", finalOutputs: { done: "done" } });
    await second.close();
    folder.remove();
  });

  it("after a long gate, ends when the remaining time has elapsed", async () => {
    const clock = createManualClock();
    const definition = { ...gated, settings: { timeout: "15m" } };
    await using service = await startWorkflowService({ definitions: { "w.json": definition }, clock });
    const runId = await service.trigger("w");
    await service.until("w", runId, ({ status }) => status === "waiting_human");
    await clock.jump(3 * HOUR);
    expect((await approve(service, "w", runId)).status).toBe(200);
    await service.until("w", runId, ({ nodeResults }) => nodeResults.after?.status === "running");
    await clock.jump(14 * 60_000);
    expect((await service.detail("w", runId)).status).toBe("running");
    const status = async () => {
      await clock.advance(60_000);
      return (await service.detail("w", runId)).status;
    };
    await expect.poll(status).toBe("failed");
    expect((await service.detail("w", runId)).error.code).toBe("timeout");
  });

  it("if a gate prolongs it, is prolonged for nodes that wait in parallel, too", async () => {
    const clock = createManualClock();
    const beside = {
      settings: { timeout: "60m" },
      nodes: {
        long: { type: "wait", with: { for: "90m" } },
        soon: { type: "wait", with: { for: "10m" } },
        ok: { type: "human_gate", needs: ["soon"], with: { title: "Go on?" } },
      },
      outputs: { waited: "${{ nodes.long.output.waitedMs }}" },
    };
    await using service = await startWorkflowService({ definitions: { "w.json": beside }, clock });
    const runId = await service.trigger("w");
    await service.until("w", runId, ({ nodeResults }) => nodeResults?.soon?.status === "running");
    await pass(clock, 10 * 60_000, async () => (await service.detail("w", runId)).status === "waiting_human");
    const isLongOver = async () => (await service.detail("w", runId)).nodeResults.long.status === "completed";
    await pass(clock, 2 * HOUR, isLongOver, 2 * HOUR);
    await approve(service, "w", runId);
    expect(await service.ended("w", runId)).toMatchObject({ status: "completed", finalOutputs: { waited: 90 * 60_000 } });
  });
});
