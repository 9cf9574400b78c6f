import type { GraphNode } from "../definition/definition.ts";
import { WIND_UP_MS } from "../limits.ts";
import type { RunError } from "../runs/run-record.ts";
import { NodeInterrupted } from "./node-interrupted.ts";
import { playGraph } from "./play-graph.ts";
import { playNode } from "./play-node.ts";
import type { Frame, Running } from "./running.ts";

/**
 * Executes `onFailure` of a failed run, once: its attempts are steps of the engine. Its own failure is in history, and does not change why the run
 * failed. Returns that reason: after a restart the one with which `onFailure` began. Rejects with the abort reason of the work's signal.
 */
export async function playOnFailure(
  running: Running,
  { node, nodes, error }: { readonly node: GraphNode; readonly nodes: Frame["nodes"]; readonly error: RunError },
): Promise<RunError> {
  const { context, record, world, live } = running;
  const { clock } = world;
  const begun = await context.step("run failed", async () => ({ error, at: clock.now() }), { repeatable: true });
  const { code, message, nodeId = null } = begun.error;
  const left = () => Math.max(0, begun.at + WIND_UP_MS - clock.now());
  const over = new AbortController();
  const timer = clock.after(left(), () => over.abort());
  const { runId, workflowId, startedAt } = record;
  const failure = { runId, workflowId, nodeId, code, message, startedAt, endedAt: new Date(begun.at).toISOString() };
  try {
    const { type } = await playNode(running, node, { prefix: "", nodes, failure, left, signal: over.signal }, playGraph);
    if (type === "skipped")
      live.ledger.add({ kind: "end", nodeId: node.id, type: node.rules.type, name: node.name, status: "skipped", attempts: 0 });
  } catch (thrown) {
    // A process ended while it was executing, and it may not be repeated. History has it as failed.
    if (!(thrown instanceof NodeInterrupted)) throw thrown;
  } finally {
    timer.cancel();
  }
  return begun.error;
}
