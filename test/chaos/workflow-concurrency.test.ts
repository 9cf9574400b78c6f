import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { workflowFolder, type WorkflowProcess } from "../harness/workflow-process.ts";

const LIVES = process.env.PORTICO_LONG ? 20 : 3;
const RUNS = process.env.PORTICO_LONG ? 300 : 40;
const LIMIT = 2;

const definition = {
  parameters: { type: "object", properties: { key: { type: "string" } } },
  concurrency: { limit: LIMIT, key: "${{ parameters.key }}" },
  nodes: { wait: { type: "wait", with: { for: "60ms" } }, last: { type: "transform", needs: ["wait"], with: { value: 1 } } },
};

it(
  `${LIVES} kills at random instants under ${RUNS} runs of a workflow with a limit: each accepted run is executed, and never more at once than the limit allows`,
  async () => {
    using folder = workflowFolder();
    folder.deploy("limited.json", definition);
    const accepted = new Map<string, string>();
    let service: WorkflowProcess;
    for (let life = 0; ; life++) {
      service = await folder.start("workflow", { hasOwnProcess: true });
      const { trigger } = service;
      const most = (RUNS * (life + 1)) / (LIVES + 1);
      const sending = (async () => {
        while (accepted.size < most) {
          const key = accepted.size % 2 === 0 ? "one" : "two";
          const runId = await trigger("limited", { key }).catch(() => undefined);
          if (runId === undefined) return;
          accepted.set(runId, key);
        }
      })();
      if (life === LIVES) {
        await sending;
        break;
      }
      await sleep(100 + Math.random() * 400);
      service.signal("SIGKILL");
      await service.exited;
      await sending;
    }
    const { call } = service;
    const list = async (): Promise<any[]> => (await call("GET", "/api/workflow/limited/runs")).body.runs;
    await expect
      .poll(async () => (await list()).filter(({ status }) => status === "running").length, { timeout: 120_000 })
      .toBe(0);
    // A run whose acceptance was not answered is executed, too.
    const runs = await list();
    expect(runs.filter(({ status }) => status !== "completed")).toEqual([]);
    expect(new Set(runs.map(({ runId }) => runId)).isSupersetOf(new Set(accepted.keys()))).toBe(true);
    const times = new Map<string, { readonly at: number; readonly change: 1 | -1 }[]>();
    for (const { runId, completedAt } of runs) {
      const { body } = await call("GET", `/api/workflow/limited/runs/${runId}`);
      const of = times.get(body.parameters.key) ?? [];
      of.push({ at: Date.parse(body.nodeResults.wait.startedAt), change: 1 }, { at: Date.parse(completedAt), change: -1 });
      times.set(body.parameters.key, of);
    }
    for (const of of times.values()) expect(mostAtOnce(of)).toBe(LIMIT);
    await service.stop();
  },
  10 * 60_000,
);

/** Of two changes in one millisecond, the end comes first. */
function mostAtOnce(changes: readonly { readonly at: number; readonly change: 1 | -1 }[]): number {
  let [now, most] = [0, 0];
  for (const { change } of changes.toSorted((one, other) => one.at - other.at || one.change - other.change)) {
    now += change;
    most = Math.max(most, now);
  }
  return most;
}
