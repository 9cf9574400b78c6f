import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clusterPlace } from "../harness/cluster.ts";
import { type FailingCluster, type FailingProcess, startFailingCluster, WHOLE_ANSWER } from "../harness/failing-cluster.ts";

const first = await clusterPlace();
await first?.remove();

const LEASE_MS = 2000;

describe.skipIf(!first)("a process that is cut off", () => {
  let failing: FailingCluster;
  let lost: FailingProcess;
  beforeEach(async () => {
    failing = await startFailingCluster({ env: { PORTICO_CLUSTER_LEASE_MS: `${LEASE_MS}` } });
    lost = failing.processes[0]!;
  }, 120_000);
  afterEach(() => failing?.[Symbol.asyncDispose]());

  /** A turn and runs that execute, some of them in the process that is lost. */
  async function beginWork() {
    const [a, b] = failing.processes;
    const before = failing.asked();
    // Its client is connected to the process that lives.
    const turn = await failing.beginTurn(failing.client(b, a), "There");
    const runs = [...(await failing.accept(3, "asks", a)), ...(await failing.accept(3, "asks", b))];
    await expect.poll(failing.asked).toBe(before + 1 + runs.length);
    return { turn, runs };
  }
  async function works(process: FailingProcess) {
    await failing.completed("slow", await failing.accept(4, "slow", process));
    const turn = await failing.beginTurn(failing.client(process), "Again");
    failing.release();
    expect(await turn.ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
  }

  it.each([
    ["from PostgreSQL, without a sign from the network", () => lost.postgres.hold(), () => lost.postgres.heal()],
    ["from everything, because it is stopped", () => lost.process.signal("SIGSTOP"), () => lost.process.signal("SIGCONT")],
  ])("%s: others take its work over, it is fenced, and it works again afterwards", async (_, cut, heal) => {
    const { turn, runs } = await beginWork();
    const asked = failing.asked();
    cut();
    const { end } = await turn.ended;
    expect(end).toMatchObject({ status: "failed", code: "process_restart" });
    // The process that lives asks the model again for the runs that the lost one executed.
    await expect.poll(failing.asked).toBeGreaterThan(asked);
    const calls = failing.trigger("slow", lost);
    failing.release();
    await completedThere(runs);
    heal();
    expect([200, 503]).toContain((await calls).status);
    await expect.poll(() => failing.trigger("slow", lost).then(({ status }) => status)).toBe(200);
    await completedThere(runs);
    await works(lost);
  });

  async function completedThere(runs: readonly string[]) {
    const [, living] = failing.processes;
    for (const run of runs) {
      await expect
        .poll(() => {
          failing.release();
          return failing.statusOf("asks", run, living);
        })
        .toBe("completed");
    }
  }

  it("from PostgreSQL: a call to it gets 503 after a while", async () => {
    lost.postgres.hold();
    expect((await failing.trigger("slow", lost)).status).toBe(503);
    lost.postgres.heal();
    await expect.poll(() => failing.trigger("slow", lost).then(({ status }) => status)).toBe(200);
  }, 120_000);

  it.each([
    ["refuses", () => lost.redis.cut()],
    ["is silent", () => lost.redis.hold()],
  ])(
    "from Redis, which %s: its calls are accepted, all work ends, and events reach clients of both processes",
    async (_, cut) => {
      const { turn, runs } = await beginWork();
      cut();
      const more = await failing.accept(4, "slow", lost);
      const here = await failing.beginTurn(failing.client(lost), "Here");
      failing.release();
      for (const each of [turn, here])
        expect(await each.ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
      await failing.completed("asks", runs);
      await failing.completed("slow", more);
      lost.redis.heal();
      await works(lost);
    },
  );
});
