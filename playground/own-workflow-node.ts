// A kind of workflow node of one's own: `counter` counts under a name, for ticket numbers and the like.
import { memoryRecords } from "@portico/adapters/records/memory";
import { type App, createApp, defineWorkflowNode, ports } from "@portico/core";
import * as v from "valibot";

const input = v.strictObject({
  /** What is counted. */
  name: v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,64}$/)),
  by: v.optional(v.pipe(v.number(), v.integer()), 1),
});

export interface CounterOptions {
  /** A counter goes no further; default 1,000,000. */
  readonly most?: number;
}

/** Definitions use it as `type: counter` with `with: { name: tickets }`; its output is `{ count }`. */
export const counterNode = defineWorkflowNode({
  name: "workflow-nodes/counter",
  needs: { records: ports.records },
  rules: () => ({
    type: "counter",
    input,
    // A step is written down together with its count: the same one, done again, counts once.
    repeatable: true,
  }),
  open({ records }, { most = 1_000_000 }: CounterOptions) {
    const counters = records.collection<{ readonly count: number }>({ name: "workflow-counters" });
    const steps = records.collection<{ readonly count: number }>({ name: "workflow-counted-steps" });
    return {
      async run({ input: { name, by }, step: { runId, nodeId, attempt }, signal }: ports.NodeWork<v.InferOutput<typeof input>>) {
        const step = `${runId}/${nodeId}/${attempt}`;
        for (;;) {
          signal.throwIfAborted();
          const done = await steps.get(step);
          if (done) return done.value;
          const found = await counters.get(name);
          const count = (found?.value.count ?? 0) + by;
          if (count > most) throw new ports.NodeFailed("counter_full", "The counter is at its end", { retryable: false });
          try {
            await records.batch([
              counters.write.put(name, { count }, found?.version ?? "absent"),
              steps.write.put(step, { count }, "absent"),
            ]);
            return { count };
          } catch (error) {
            // Somebody counted meanwhile: again, from there.
            if (!(error instanceof ports.RecordConflict)) throw error;
          }
        }
      },
    };
  },
});

/** An app with nothing but this node and a store for it. */
export function start(): Promise<App> {
  return createApp({ name: "counting", adapters: [counterNode({}), memoryRecords()] });
}

if (import.meta.main) {
  await using app = await start();
  const [counter] = app.port(ports.workflowNodes);
  const { signal } = new AbortController();
  for (const runId of ["run_1", "run_1", "run_2"]) {
    const step = { runId, workflowId: "triage", nodeId: "number", attempt: 1 };
    console.log(runId, await counter!.run({ input: { name: "tickets", by: 1 }, step, signal }));
  }
}
