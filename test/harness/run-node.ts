import { systemClock } from "@portico/adapters/clock/system";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, ports } from "@portico/core";
import { parseInput, type With } from "../conformance/workflow-nodes.ts";
import { openAdapter } from "../conformance/open-adapter.ts";

/** A node that stands open outside any workflow service. */
export interface OpenNode extends AsyncDisposable {
  readonly node: ports.WorkflowNode;
  run(given: With, more?: Partial<ports.NodeStep> & { readonly signal?: AbortSignal }): Promise<unknown>;
  /** The error of a run that must fail. */
  failure(given: With, more?: Partial<ports.NodeStep> & { readonly signal?: AbortSignal }): Promise<ports.NodeFailed>;
  check(written: With): readonly ports.NodeFault[];
}

export async function openNode(adapter: Adapter<typeof ports.workflowNodes>, others: readonly Adapter[] = []): Promise<OpenNode> {
  // An app has these without an adapter.
  const builtIn = [memoryTelemetry({}), systemClock()].filter(({ spec: { port } }) =>
    others.every(({ spec }) => spec.port !== port),
  );
  const { port: node, close } = await openAdapter(adapter, [...others, ...builtIn]);
  const run: OpenNode["run"] = async (given, { signal = new AbortController().signal, ...step } = {}) =>
    node.run({
      input: parseInput(node, given),
      step: { runId: "run_1", workflowId: "triage", nodeId: "node", attempt: 1, userId: "ada", ...step },
      signal,
    });
  return {
    node,
    run,
    async failure(given, more) {
      const output = await run(given, more).catch((error: unknown) => error);
      if (output instanceof ports.NodeFailed) return output;
      throw output instanceof Error ? output : new Error(`The node gave ${JSON.stringify(output)}`);
    },
    check: (written) => node.check?.(written) ?? [],
    [Symbol.asyncDispose]: close,
  };
}
