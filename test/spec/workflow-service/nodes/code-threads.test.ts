import { Worker } from "node:worker_threads";
import { createManualClock } from "@portico/adapters/clock/manual";
import { codeNode } from "@portico/workflow-nodes/code";
import { createSystemClock, ports } from "@portico/core";
import { JobOverran, JobPool, type JobPoolOptions, PoolBusy, ThreadCrashed } from "@portico/core/kit";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { readOutcome } from "../../../../adapters/workflow-nodes/src/sandbox/read-outcome.ts";
import { createSandboxThreads } from "../../../../adapters/workflow-nodes/src/sandbox/sandbox-threads.ts";
import { startWorkflowService } from "../../../harness/workflow-app.ts";

const code = (source: string) => ({
  nodes: { run: { type: "code", with: { source } } },
  outputs: { is: "${{ nodes.run.output }}" },
});

describe("a workflow service with code nodes", () => {
  it("ends a ninth, short script while eight slow ones execute, even with one thread", async () => {
    await using service = await startWorkflowService({
      definitions: { "slow.json": code("for (;;);"), "short.json": code("return 1") },
      adapters: [codeNode({ cpuMs: 120_000, threads: 1 })],
    });
    const slow = await Promise.all(Array.from({ length: 8 }, () => service.trigger("slow")));
    for (const runId of slow) await service.until("slow", runId, ({ nodeResults }) => nodeResults.run?.status === "running");
    const short = await service.ended("short", await service.trigger("short"));
    expect(short.finalOutputs).toEqual({ is: 1 });
    const { body } = await service.call("GET", "/api/workflow/slow/runs");
    expect(body.runs.map(({ status }: { status: string }) => status)).toEqual(slow.map(() => "running"));
  });
});

/** Echoes its jobs, except for those that never end, or end the thread. Counts the starts of threads and the begun jobs. */
const MODULE = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, workerData } from "node:worker_threads";
    const counts = new Int32Array(workerData.counts ?? new SharedArrayBuffer(8));
    Atomics.add(counts, 0, 1);
    parentPort.on("message", (job) => {
      Atomics.add(counts, 1, 1);
      if (job === "exit") process.exit(1);
      if (job === "throw") throw new Error("broken");
      if (job === "spin") for (;;);
      if (job !== "hang") parentPort.postMessage(job);
    });
    parentPort.postMessage("ready");
  `)}`,
);

describe("the threads of a sandbox", () => {
  afterEach(() => vi.restoreAllMocks());

  it("start when jobs need them, execute one job after another, and end when they are idle", async () => {
    const ends = vi.spyOn(Worker.prototype, "terminate");
    const { run, clock, starts } = open({ threads: 4 });
    expect(starts()).toBe(0);
    for (const job of ["a", "b", "c"]) expect(await run(job)).toBe(job);
    expect(starts()).toBe(1);
    expect(await Promise.all(["d", "e", "f", "g", "h"].map((job) => run(job)))).toEqual(["d", "e", "f", "g", "h"]);
    expect(starts()).toBe(4);
    await clock.advance(59_999);
    expect(ends).toHaveBeenCalledTimes(0);
    await clock.advance(1);
    expect(ends).toHaveBeenCalledTimes(4);
    expect(await run("again")).toBe("again");
    expect(starts()).toBe(5);
  });

  it.each(["exit", "throw"])("are replaced after a crash (%s), which fails only its own job", async (crash) => {
    const { run, starts } = open({ threads: 1 });
    const [crashed, next] = await Promise.allSettled([run(crash), run("next")]);
    expect(crashed).toMatchObject({ reason: { constructor: ThreadCrashed } });
    expect(next).toMatchObject({ value: "next" });
    expect(starts()).toBe(2);
  });

  it("are replaced if they are stuck, and the time of a job counts from its beginning, not while it waits", async () => {
    const { run, clock, begun } = open({ threads: 1, timeoutMs: 50, waitMs: 80 });
    const jobs = ["hang", "hang", "next"].map((job) => run(job).catch((error: unknown) => error));
    await expect.poll(begun).toBe(1);
    await clock.advance(49);
    expect(begun()).toBe(1);
    await clock.advance(1);
    expect(await jobs[0]).toBeInstanceOf(JobOverran);
    await expect.poll(begun).toBe(2);
    // The second job has waited for 50 ms, which does not count.
    await clock.advance(49);
    expect(await Promise.race([jobs[1], "executes"])).toBe("executes");
    // The third job has waited longer than it may.
    expect(await jobs[2]).toBeInstanceOf(PoolBusy);
    await clock.advance(1);
    expect(await jobs[1]).toBeInstanceOf(JobOverran);
    expect(await run("last")).toBe("last");
  });

  it("end a job that uses too much processor time", async () => {
    const { run } = open({ threads: 1, cpuMs: 50 }, createSystemClock());
    await expect(run("spin")).rejects.toBeInstanceOf(JobOverran);
    expect(await run("next")).toBe("next");
  });

  it("execute further jobs beside at most eight slow ones", async () => {
    const { run, clock, begun, starts } = open({ threads: 2, waitMs: 60_000 });
    const jobs = Array.from({ length: 11 }, () => run("hang").catch((error: unknown) => error));
    for (let count = 2; count <= 10; count += 2) {
      await expect.poll(begun).toBe(count);
      await clock.advance(100);
    }
    await clock.advance(60_000);
    expect(await jobs[10]).toBeInstanceOf(PoolBusy);
    expect([starts(), begun()]).toEqual([10, 10]);
  });

  it("end with their jobs when they are closed, also those that wait", async () => {
    const { run, begun, pool } = open({ threads: 1 });
    const jobs = ["hang", "waits"].map((job) => run(job).catch((error: Error) => error.message));
    await expect.poll(begun).toBe(1);
    await pool.close();
    expect(await Promise.all([...jobs, run("late").catch((error: Error) => error.message)])).toEqual(
      Array(3).fill("The threads are closed"),
    );
    expect(begun()).toBe(1);
  });

  it("fail a script whose thread crashed with code_crashed, which may be retried", async () => {
    const limits = { cpuMs: 1000, memoryBytes: 1e6 };
    const threads = createSandboxThreads<string>({ name: "crashing", module: () => MODULE, limits }, createSystemClock());
    onTestFinished(() => threads.close());
    const outcome = await threads.run("exit", new AbortController().signal);
    const read = () => readOutcome(outcome, { code: "code", subject: "The script", limits, place: () => "" });
    expect(read).toThrow(ports.NodeFailed);
    expect(read).toThrow(expect.objectContaining({ code: "code_crashed", retryable: true }));
  });
});

function open(options: Partial<JobPoolOptions<string>> = {}, clock: ports.Clock = createManualClock()) {
  const counts = new SharedArrayBuffer(8);
  const counted = new Int32Array(counts);
  const limits = { threads: 1, waitMs: 600_000, cpuMs: 600_000, timeoutMs: 600_000, spoils: () => false };
  const pool = new JobPool<string, string>(
    { name: "test", module: () => MODULE, given: { counts }, ...limits, ...options },
    clock,
  );
  onTestFinished(() => pool.close());
  return {
    ...{ pool, clock: clock as ReturnType<typeof createManualClock> },
    run: (job: string) => pool.run(job, new AbortController().signal),
    starts: () => Atomics.load(counted, 0),
    begun: () => Atomics.load(counted, 1),
  };
}
