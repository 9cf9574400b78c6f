import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { keyedIdSuffix } from "../../plugins/src/conversations-runs/background/background-turn.ts";
import { TOKENS } from "../harness/agent-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 2;
const EVERY_MS = 1000;
/** Schedules that catch up all that they missed. */
const WHOLE = ["all", "spread"];
const NAMES = [...WHOLE, "careful"];

let folder: ReturnType<typeof temporaryFolder>;
let happened: string;
const children: ChildProcess[] = [];
// A repeated test knows nothing of the attempt before it.
beforeEach(() => {
  folder = temporaryFolder();
  happened = join(folder.path, "happened");
});
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  folder.remove();
});

it(
  `${LIVES} kills at any instant of an agent with schedules, whose provider is often away: no planned time is lost or played twice, and each run ends`,
  async () => {
    const beganAt = Date.now();
    for (let life = 0; life < LIVES; life++) {
      const { child } = await begin();
      const before = linesOf().length;
      while (linesOf().length === before) await sleep(10);
      const exited = once(child, "exit");
      setTimeout(() => child.kill("SIGKILL"), Math.random() * 2500);
      expect(await exited).toEqual([null, "SIGKILL"]);
    }
    const { child, url } = await begin();
    await sleep(3 * EVERY_MS);
    for (const name of NAMES) await call(url, "POST", `/api/schedules/helper/${name}/pause`);
    const runs = await settled(url);
    const lines = linesOf();
    const played = count(lines.filter((line) => line.startsWith("played ")).map((line) => line.slice("played ".length)));
    expect([...played.values()].filter((times) => times > 1)).toEqual([]);
    const away = lines.filter((line) => line.startsWith("away "));
    expect(away.length).toBeGreaterThan(0);

    const byId = new Map(runs.map((run) => [run.run_id, run]));
    expect(byId.size).toBe(runs.length);
    for (const name of WHOLE) {
      const planned = plannedBetween(beganAt, Date.now()).map((time) => byId.has(runIdOf(name, time)));
      const [first, last] = [planned.indexOf(true), planned.lastIndexOf(true)];
      expect(last).toBeGreaterThan(first);
      expect(planned.slice(first, last + 1)).not.toContain(false);
    }
    const known = new Set(NAMES.flatMap((name) => plannedBetween(beganAt, Date.now()).map((time) => runIdOf(name, time))));
    expect([...byId.keys()].filter((id) => !known.has(id))).toEqual([]);

    for (const { run_id: id, status, failure_reason: reason, attempts = 1 } of runs) {
      const { receipts } = await call(url, "GET", `/api/runs/${id}/receipt?limit=100`);
      const isClosed = reason === "process_restart";
      expect([id, status, receipts.length]).toEqual([id, isClosed || reason === "error" ? "failed" : "completed", attempts]);
      if (status === "completed") expect(played.get(id)).toBe(1);
      if (reason === "error") expect(played.has(id)).toBe(false);
    }
    const careful = runs.filter(({ inbound }) => inbound.displayName === "careful").toSorted(byStart);
    for (const [at, { started_at: start }] of careful.entries())
      if (at > 0) expect(start >= careful[at - 1]!.completed_at).toBe(true);
    expect(careful.length).toBeGreaterThan(0);
    child.kill("SIGKILL");
  },
  120_000 + LIVES * 20_000,
);

interface ListedRun {
  readonly run_id: string;
  readonly status: string;
  readonly started_at: string;
  readonly completed_at: string;
  readonly failure_reason?: string;
  readonly retry_at?: string;
  readonly attempts?: number;
  readonly inbound: { readonly displayName: string };
}

const byStart = (a: ListedRun, b: ListedRun) => a.started_at.localeCompare(b.started_at);
const runIdOf = (name: string, plannedAt: number) => `run_${keyedIdSuffix(`schedule:helper/${name}:${plannedAt}`)}`;

function plannedBetween(from: number, to: number): readonly number[] {
  const first = Math.ceil(from / EVERY_MS);
  return Array.from({ length: Math.max(0, Math.floor(to / EVERY_MS) - first + 1) }, (_, at) => (first + at) * EVERY_MS);
}

/** A last line without a line end was cut by a kill. */
function linesOf(): readonly string[] {
  return existsSync(happened) ? readFileSync(happened, "utf8").split("\n").slice(0, -1) : [];
}

async function begin() {
  const child = fork(join(import.meta.dirname, "processes/schedule-service.ts"), [folder.path, happened]);
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

async function call(url: string, method: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { method, headers: { "x-agent-service-token": TOKENS.owner } });
  expect(answer.status).toBe(200);
  return answer.json();
}

/** All runs, when each has ended and no new one begins. */
async function settled(url: string): Promise<readonly ListedRun[]> {
  for (let found = -1; ;) {
    await sleep(2 * EVERY_MS);
    const runs: readonly ListedRun[] = (await call(url, "GET", "/api/runs?limit=100000")).runs;
    const isOver = runs.every(({ status, retry_at: at }) => status !== "running" && at === undefined);
    if (isOver && runs.length === found) return runs;
    found = runs.length;
  }
}

function count(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
