/** The workflow service of the benchmark, in its own process, with stores in a folder and real HTTP. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { workflowRuntime, type WorkflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

export type ServerJob =
  | { readonly do: "open"; readonly dataDir: string }
  /** Start runs in this process, at most this many at a time, each until its end. */
  | { readonly do: "finish"; readonly workflowId: string; readonly runs: number; readonly concurrency: number }
  /** Execute one run with costly expressions, and watch the event loop. */
  | { readonly do: "watch"; readonly workflowId: string }
  | { readonly do: "close" };

export interface ServerResult {
  readonly url?: string;
  readonly perSecond?: number;
  readonly p50?: number;
  /** Processor time of this process per run. Other load on the machine changes it less than the rate. */
  readonly cpuMicroseconds?: number;
  readonly totalMs?: number;
  /** How long the event loop was held at most. */
  readonly heldMs?: number;
}

const transforms = (count: number, type: string) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      `n${at}`,
      {
        type,
        ...(at > 0 && { needs: [`n${at - 1}`] }),
        with: {
          [type === "transform" ? "value" : "say"]: at === 0 ? "${{ parameters.n }}" : `\${{ nodes.n${at - 1}.output + 1 }}`,
        },
      },
    ]),
  );
/** Takes 8,190 steps of the 10,000 that an expression may take on the event loop. The number makes each one different. */
const costly = (number: number) => `\${{ parameters.half.all(x, parameters.half.all(y, x + y + ${number} > 0)) }}`;
const half = Array.from({ length: 90 }, (_, at) => at + 1);
const parameters = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

const definitions = {
  // These runs begin and do not end, so that runs accepted after them wait in the queue.
  "hold.json": { nodes: { a: { type: "repeatable", with: { gate: "never" } } } },
  "three.json": { parameters, nodes: transforms(3, "transform"), outputs: { n: "${{ nodes.n2.output }}" } },
  "five.json": { parameters, nodes: transforms(5, "transform"), outputs: { n: "${{ nodes.n4.output }}" } },
  // Each node is a stored step, as the steps of other engines are.
  "steps.json": { parameters, nodes: transforms(5, "repeatable"), outputs: { n: "${{ nodes.n4.output }}" } },
  "costly.json": { nodes: { n: { type: "transform", with: { value: Array.from({ length: 1000 }, (_, at) => costly(at)) } } } },
  "costly-map.json": {
    nodes: {
      m: {
        type: "map",
        with: {
          items: "lists.range(320)",
          concurrency: 64,
          nodes: { n: { type: "transform", with: { value: costly(0) } } },
          result: "index",
        },
      },
    },
  },
  "trivial-map.json": {
    nodes: {
      m: {
        type: "map",
        with: {
          items: "lists.range(5000)",
          nodes: { n: { type: "transform", with: { value: "${{ item }}" } } },
          result: "${{ nodes.n.output }}",
        },
      },
    },
  },
};

let service: WorkflowService | undefined;

process.on("message", async (job: ServerJob) => {
  if (job.do === "close") {
    await service?.close();
    return process.send?.({});
  }
  if (job.do === "watch") return process.send?.(await watch(service!.app.port(workflowRuntime), job.workflowId));
  if (job.do === "finish") return process.send?.(await finish(service!.app.port(workflowRuntime), job));
  service = await startWorkflowService({
    dataDir: job.dataDir,
    definitions,
    telemetry: openTelemetry({ level: "silent", format: "json" }),
  });
  process.send?.({ url: service.url } satisfies ServerResult);
});

async function finish(
  runtime: WorkflowRuntime,
  { workflowId, runs, concurrency }: Extract<ServerJob, { do: "finish" }>,
): Promise<ServerResult> {
  const definition = runtime.catalogue.find(workflowId);
  if (!definition) throw new Error(`There is no workflow ${workflowId}`);
  const times: number[] = [];
  let left = runs;
  const before = process.cpuUsage();
  const begun = performance.now();
  const clients = Array.from({ length: concurrency }, async () => {
    while (left-- > 0) {
      const at = performance.now();
      const { runId } = await runtime.startRun({ definition, parameters: { n: left } });
      await ended(runtime, runId);
      times.push(performance.now() - at);
    }
  });
  await Promise.all(clients);
  const perSecond = (runs * 1000) / (performance.now() - begun);
  times.sort((a, b) => a - b);
  const { user, system } = process.cpuUsage(before);
  return { perSecond, cpuMicroseconds: (user + system) / runs, p50: times[Math.floor(times.length / 2)] ?? Number.NaN };
}

async function watch(runtime: WorkflowRuntime, workflowId: string): Promise<ServerResult> {
  const definition = runtime.catalogue.find(workflowId);
  if (!definition) throw new Error(`There is no workflow ${workflowId}`);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const begun = performance.now();
  const { runId } = await runtime.startRun({ definition, parameters: { half } });
  await ended(runtime, runId);
  const totalMs = performance.now() - begun;
  // The monitor notices a turn when its timer fires after it.
  await new Promise((resolve) => setTimeout(resolve, 50));
  delays.disable();
  return { totalMs, heldMs: delays.max / 1e6 };
}

/**
 * Resolves when the end of the run is on the disk. Must be called in the turn of the event loop in which the run was accepted, before it
 * can begin.
 */
async function ended({ live: liveRuns, runs }: WorkflowRuntime, runId: string): Promise<void> {
  const live = liveRuns.enter(runId);
  for await (const _entry of live.ledger.read({ follow: true }));
  liveRuns.leave(live);
  const status = (await runs.find(runId))?.value.status;
  if (status !== "completed") throw new Error(`A run ended as ${status}`);
}
