import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLUSTER_WORKFLOW, type ClusterPlace, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { type FailingCluster, startFailingCluster, WHOLE_ANSWER } from "../harness/failing-cluster.ts";
import { fakedClock, fakeTimeLibrary } from "../harness/faked-clock.ts";
import { type PorticoProcess, runPortico, temporaryFolder } from "../harness/portico-process.ts";

const first = await clusterPlace();
await first?.remove();
const isThere = first !== undefined && fakeTimeLibrary() !== undefined;
if (first && !isThere) console.warn("Tests of clocks that differ are skipped: this machine has no faketime");

/** Seconds. */
const HOUR = 3600;
const LEASE_MS = 2000;
/** What processes log when one of them lost its lease. */
const LEASE_LOST = /is lost|was not heard of/;

describe.skipIf(!isThere)("processes whose clocks differ from the database's", () => {
  let place: ClusterPlace;
  let cluster: RunningCluster;
  beforeEach(async () => {
    place = (await clusterPlace({ PORTICO_CLUSTER_LEASE_MS: `${LEASE_MS}` }))!;
    await writeDocuments(place, {
      "workflows/slow.json": { nodes: { wait: { type: "wait", with: { for: "300ms" } } } },
      "workflows/gated.json": { nodes: { ok: { type: "human_gate", with: { title: "Go on?" } } } },
    });
    cluster = await startCluster(place, { count: 0 });
  });
  afterEach(() => cluster[Symbol.asyncDispose]());

  const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };
  const call = async (process: PorticoProcess, path: string, body?: object) => {
    const url = `${process.url("workflow")}/api/workflow/${path}`;
    const answer = await fetch(url, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
    expect([path, answer.status]).toEqual([path, 200]);
    return answer.json() as Promise<any>;
  };
  const start = async (process: PorticoProcess, workflow: string): Promise<string> =>
    (await call(process, `webhook?id=${workflow}`, {})).runId;
  const statusOf = async (process: PorticoProcess, workflow: string, runId: string): Promise<string> =>
    (await call(process, `${workflow}/runs/${runId}`)).status;

  it.each([
    ["ahead of", -HOUR],
    ["behind", HOUR],
  ])("are reported by doctor and by a start (the database is %s them by an hour)", async (word, seconds) => {
    const { env } = fakedClock(place.folder, "wrong", seconds);
    const { stdout } = await runPortico(["doctor", "--json"], { cwd: place.folder, env: { ...place.env, ...env } });
    const findings = JSON.parse(stdout) as { about: string; message: string; isWrong: boolean; fix?: string }[];
    const fix = "synchronize the clocks of all machines (NTP)";
    expect(findings.filter(({ isWrong }) => isWrong)).toEqual([
      expect.objectContaining({ about: "PostgreSQL", message: expect.stringContaining(word), fix }),
      expect.objectContaining({ about: "Redis", message: expect.stringContaining(word), fix }),
    ]);
    const process = await cluster.add(env);
    const [warning, ...more] = warningsOf(process);
    expect(more).toEqual([]);
    expect(warning.msg).toContain("differ by more than the lease");
    expect(Math.round(warning.aheadMs / 1000)).toBe(seconds);
  });

  it("are not reported while they differ by less than the lease", async () => {
    const { env } = fakedClock(place.folder, "close", 1);
    const { code } = await runPortico(["doctor", "--json"], { cwd: place.folder, env: { ...place.env, ...env } });
    expect(code).toBe(0);
    expect(warningsOf(await cluster.add(env))).toEqual([]);
  });

  it("keep their leases, execute all work, and take over the work of a killed process", async () => {
    const ahead = await cluster.add(fakedClock(place.folder, "ahead", HOUR).env);
    const behind = await cluster.add(fakedClock(place.folder, "behind", -HOUR).env);
    for (const process of [ahead, behind, ahead, behind]) {
      const run = await start(process, "slow");
      await expect.poll(() => statusOf(process, "slow", run)).toBe("completed");
    }
    const gated = await Promise.all([ahead, behind, ahead, behind].map((process) => start(process, "gated")));
    for (const run of gated) await expect.poll(() => statusOf(behind, "gated", run)).toBe("waiting_human");
    for (const { stderr } of [ahead, behind]) expect(stderr()).not.toMatch(LEASE_LOST);
    ahead.signal("SIGKILL");
    await ahead.exited;
    for (const run of gated) {
      const decided = await place.run("workflow", "approve", run, "--url", behind.url("workflow"));
      expect([decided.code, decided.stderr]).toEqual([0, ""]);
      await expect.poll(() => statusOf(behind, "gated", run)).toBe("completed");
    }
  });
});

describe.skipIf(!isThere)("clocks that are set while processes work", () => {
  let failing: FailingCluster;
  const folder = temporaryFolder();
  afterEach(async () => {
    await failing?.[Symbol.asyncDispose]();
    folder.remove();
  });

  it("interrupt no turn and no run", async () => {
    const clock = fakedClock(folder.path, "set", 0);
    failing = await startFailingCluster({ env: { ...clock.env, PORTICO_CLUSTER_LEASE_MS: `${LEASE_MS}` } });
    const [a, b] = failing.processes;
    for (const seconds of [HOUR, -HOUR, 0]) {
      const asked = failing.asked();
      const turn = await failing.beginTurn(failing.client(a, b), "Hello");
      const runs = await failing.accept(4, "asks");
      await expect.poll(failing.asked).toBe(asked + 1 + runs.length);
      clock.set(seconds);
      await failing.completed("slow", await failing.accept(2, "slow"));
      failing.release();
      expect(await turn.ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
      await failing.completed("asks", runs);
      expect(failing.asked()).toBe(asked + 1 + runs.length);
    }
    for (const { process } of failing.processes) expect(process.stderr()).not.toMatch(LEASE_LOST);
  });
});

/** The warnings of its log about clocks. */
function warningsOf({ stderr }: PorticoProcess): any[] {
  const lines = stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.includes("clocks"));
}
