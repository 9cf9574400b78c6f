import { evaluated, filledIn } from "./evaluated.ts";
import type { Frame, GraphOutcome, NodePlay } from "./running.ts";

/** Executes the nodes inside a `map` or `loop` once. They have their own frame, and their expressions can also name the surrounding nodes. */
export function innerGraph(
  { running, node, nodeId, frame, playGraph }: NodePlay,
  signal: AbortSignal,
): (seen: Pick<Frame, "item" | "index" | "previous">) => Promise<{ readonly frame: Frame; readonly outcome: GraphOutcome }> {
  const { nodes } = node.with;
  if (nodes?.kind !== "graph") throw new TypeError(`Node ${nodeId} has no nodes`);
  return async (seen) => {
    const { completed: _completed, ...outer } = frame;
    const inside: Frame = { ...outer, ...seen, prefix: `${nodeId}[${seen.index}].`, nodes: { ...frame.nodes }, signal };
    return { frame: inside, outcome: await playGraph(running, nodes.graph, inside) };
  };
}

/** `result` of one execution; null if the node has no `result`. Throws ExpressionFailed and the signals' reasons. */
export async function innerResult({ running, node }: NodePlay, frame: Frame): Promise<unknown> {
  const { result } = node.with;
  if (result?.kind === "expression") {
    const { expression } = result;
    return evaluated(running, frame, [expression], (scope) => expression.evaluate(scope));
  }
  return result?.kind === "template" ? filledIn(running, frame, result.template) : null;
}
