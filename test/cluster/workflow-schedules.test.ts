import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scheduledRunId } from "../../plugins/src/workflow-service/runs/run-id.ts";
import { CLUSTER_WORKFLOW, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";

const KILLS = process.env["PORTICO_LONG"] ? 20 : 2;
const EVERY_MS = 1000;
const WORKFLOW = "marks";
const schedule = { every: "1s", catchUp: 1000 };
const definition = {
  schedules: [
    { ...schedule, name: "beside", overlap: "allow" },
    { ...schedule, name: "after", overlap: "queue" },
  ],
  nodes: { mark: { type: "transform", with: { value: 1 } } },
};

interface ListedRun {
  readonly runId: string;
  readonly status: string;
  readonly startedAt: string;
  readonly completedAt: string;
  readonly schedule: { readonly name: string; readonly plannedAt: string };
}

const place = await clusterPlace();

describe.skipIf(!place)("schedules of a workflow in three processes with one PostgreSQL", () => {
  let cluster: RunningCluster;
  beforeAll(async () => {
    await writeDocuments(place!, { [`workflows/${WORKFLOW}.json`]: definition });
    cluster = await startCluster(place!);
  }, 120_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const call = async (method: string, path: string): Promise<any> => {
    const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW };
    const answer = await fetch(`${cluster.url("workflow")}/api/workflow/${path}`, { method, headers });
    expect(answer.status).toBe(200);
    return answer.json();
  };
  const runsOf = async (name: string): Promise<readonly ListedRun[]> =>
    (await call("GET", `${WORKFLOW}/runs`)).runs
      .filter((run: ListedRun) => run.schedule.name === name)
      .toSorted((a: ListedRun, b: ListedRun) => a.schedule.plannedAt.localeCompare(b.schedule.plannedAt));
  const grows = async () => {
    for (const name of ["beside", "after"]) {
      const before = (await runsOf(name)).length;
      while ((await runsOf(name)).length < before + 2) await sleep(200);
    }
  };

  it(`each planned time has exactly one run, in order with the overlap queue, also when ${KILLS} processes are killed`, async () => {
    await grows();
    for (let kill = 0; kill < KILLS; kill++) {
      const killed = cluster.processes[kill]!;
      killed.signal("SIGKILL");
      await killed.exited;
      await cluster.add();
      await grows();
    }
    for (const name of ["beside", "after"]) await call("POST", `${WORKFLOW}/schedules/${name}/pause`);
    for (const name of ["beside", "after"]) {
      await expect.poll(async () => (await runsOf(name)).every(({ status }) => status === "completed")).toBe(true);
      const runs = await runsOf(name);
      const planned = runs.map((run) => Date.parse(run.schedule.plannedAt));
      expect(planned).toEqual(planned.map((_time, at) => planned[0]! + at * EVERY_MS));
      expect(runs.map(({ runId }) => runId)).toEqual(planned.map((time) => scheduledRunId(WORKFLOW, name, time)));
    }
    const queued = await runsOf("after");
    for (const [at, { startedAt }] of queued.entries()) if (at > 0) expect(startedAt >= queued[at - 1]!.completedAt).toBe(true);
  }, 300_000);
});
