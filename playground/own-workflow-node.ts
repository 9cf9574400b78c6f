// A custom kind of workflow node: `counter` counts under a name, for example ticket numbers.
import { memoryRecords } from "@portico/adapters/records/memory";
import { type App, createApp, defineWorkflowNode, ports } from "@portico/core";
import * as v from "valibot";

const input = v.strictObject({
  /** The name of the counter. */
  name: v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,64}$/)),
  by: v.optional(v.pipe(v.number(), v.integer()), 1),
});

export interface CounterOptions {
  /** The highest count of a counter; default 1,000,000. */
  readonly most?: number;
}

/** Definitions use it as `type: counter` with `with: { name: tickets }`; its output is `{ count }`. */
export const counterNode = defineWorkflowNode({
  name: "workflow-nodes/counter",
  needs: { records: ports.records },
  rules: () => ({
    type: "counter",
    input,
    // One commit stores the step with its count. So a step that is executed again counts once.
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
          if (count > most)
            throw new ports.NodeFailed("counter_full", "The counter has reached its highest count", { retryable: false });
          try {
            await records.batch([
              counters.write.put(name, { count }, found?.version ?? "absent"),
              steps.write.put(step, { count }, "absent"),
            ]);
            return { count };
          } catch (error) {
            // Another run changed the counter in the meantime: try again with the new count.
            if (!(error instanceof ports.RecordConflict)) throw error;
          }
        }
      },
    };
  },
});

/** An app that has only this node and a store for it. */
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
