import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { scheduledRunId } from "../../plugins/src/workflow-service/runs/run-id.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { SERVICE_TOKEN } from "../harness/workflow-app.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 2;
const EVERY_MS = 1000;
const WORKFLOW = "marks";
/** Schedules that catch up all that they missed. */
const WHOLE = ["all", "spread"];
const everySecond = { every: "1s", overlap: "queue" };
const definition = {
  schedules: [
    { ...everySecond, name: "all", catchUp: 1000 },
    { ...everySecond, name: "spread", catchUp: 1000, jitter: "700ms" },
    { ...everySecond, name: "careful", overlap: "skip" },
    { ...everySecond, name: "newest", overlap: "cancel" },
  ],
  nodes: { mark: { type: "mark" } },
};
const NAMES = definition.schedules.map(({ name }) => name);

let folder: ReturnType<typeof temporaryFolder>;
let happened: string;
const children: ChildProcess[] = [];
// A repeated test knows nothing of the attempt before it.
beforeEach(() => {
  folder = temporaryFolder();
  happened = join(folder.path, "happened");
  mkdirSync(join(folder.path, "workflows"));
  writeFileSync(join(folder.path, "workflows", `${WORKFLOW}.json`), JSON.stringify(definition));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  folder.remove();
});

it.each([
  [1, "one process"],
  [2, "two processes, one of which stands by"],
])(
  `${LIVES} kills at any instant of a workflow service with schedules (%i: %s): each planned time has one run, none is lost, each run ends, and no node that may not be repeated is executed twice`,
  async (processes) => {
    const beganAt = Date.now();
    const living = await Promise.all(Array.from({ length: processes }, begin));
    for (let life = 0; life < LIVES; life++) {
      const before = marks().length;
      while (marks().length === before) await sleep(10);
      const { child } = living[life % processes]!;
      const exited = once(child, "exit");
      setTimeout(() => child.kill("SIGKILL"), Math.random() * 2500);
      expect(await exited).toEqual([null, "SIGKILL"]);
      living[life % processes] = await begin();
    }
    const { url } = living[0]!;
    await caughtUp(url);
    for (const name of NAMES) await call(url, "POST", `/api/workflow/${WORKFLOW}/schedules/${name}/pause`);
    const runs = await ended(url);

    const ids = new Set(runs.map(({ runId }) => runId));
    expect(ids.size).toBe(runs.length);
    for (const { runId, schedule } of runs)
      expect(runId).toBe(scheduledRunId(WORKFLOW, schedule.name, Date.parse(schedule.plannedAt)));
    for (const name of WHOLE) {
      const has = plannedBetween(beganAt, Date.now()).map((time) => ids.has(scheduledRunId(WORKFLOW, name, time)));
      const [first, last] = [has.indexOf(true), has.lastIndexOf(true)];
      expect(last).toBeGreaterThan(first);
      expect(has.slice(first, last + 1)).not.toContain(false);
    }

    const executed = marks();
    const marked = new Set(executed);
    expect(executed.length).toBe(marked.size);
    for (const { runId, status, error, schedule } of runs) {
      const isCancelled = schedule.name === "newest" && status === "cancelled";
      const isKilled = status === "interrupted" && error?.code === "process_restart";
      expect([runId, status, isCancelled || isKilled || status === "completed"]).toEqual([runId, status, true]);
      // A kill may come between the start of the node and its mark.
      if (status === "completed") expect(marked.has(runId)).toBe(true);
    }
    const careful = runs.filter(({ schedule }) => schedule.name === "careful").toSorted(byPlan);
    expect(careful.length).toBeGreaterThan(0);
    for (const [at, { startedAt }] of careful.entries()) if (at > 0) expect(startedAt >= careful[at - 1]!.completedAt).toBe(true);
  },
  120_000 + LIVES * 20_000,
);

interface ListedRun {
  readonly runId: string;
  readonly status: string;
  readonly startedAt: string;
  readonly completedAt: string;
  readonly error?: { readonly code: string };
  readonly schedule: { readonly name: string; readonly plannedAt: string };
}

const byPlan = (a: ListedRun, b: ListedRun) => a.schedule.plannedAt.localeCompare(b.schedule.plannedAt);

function plannedBetween(from: number, to: number): readonly number[] {
  const first = Math.ceil(from / EVERY_MS);
  return Array.from({ length: Math.max(0, Math.floor(to / EVERY_MS) - first + 1) }, (_, at) => (first + at) * EVERY_MS);
}

/** The runs whose node was executed. A last line without a line end was cut by a kill. */
function marks(): readonly string[] {
  return existsSync(happened) ? readFileSync(happened, "utf8").split("\n").slice(0, -1) : [];
}

async function begin() {
  const child = fork(join(import.meta.dirname, "processes/workflow-schedule-service.ts"), [folder.path, happened]);
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

async function call(url: string, method: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { method, headers: { "x-workflow-service-token": SERVICE_TOKEN } });
  expect(answer.status).toBe(200);
  return answer.json();
}

const runsOf = async (url: string): Promise<readonly ListedRun[]> =>
  (await call(url, "GET", `/api/workflow/${WORKFLOW}/runs`)).runs;

/** Resolves when every schedule has started a planned time of the present life. */
async function caughtUp(url: string): Promise<void> {
  const since = new Date().toISOString();
  for (;;) {
    const { schedules } = await call(url, "GET", "/api/workflow/schedules");
    if (schedules.every(({ last }: { last?: string }) => last !== undefined && last > since)) return;
    await sleep(100);
  }
}

/** All runs, when each has ended and no new one begins. */
async function ended(url: string): Promise<readonly ListedRun[]> {
  for (let found = -1; ;) {
    await sleep(2 * EVERY_MS);
    const runs = await runsOf(url);
    const isOver = runs.every(({ status }) => status !== "running");
    if (isOver && runs.length === found) return runs;
    found = runs.length;
  }
}
