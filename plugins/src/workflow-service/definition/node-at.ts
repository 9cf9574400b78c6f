import { type Definition, type Graph, type GraphNode, ON_FAILURE } from "./definition.ts";

/** A node by its id in a run (`each[3].send`), and the graph that contains it. Undefined if the definition has no such node. */
export function nodeAt(definition: Definition, nodeId: string): { readonly graph: Graph; readonly node: GraphNode } | undefined {
  let { graph } = definition;
  const path = nodeId.replaceAll(/\[\d+\]/g, "").split(".");
  for (const [at, id] of path.entries()) {
    const node = graph.nodes.get(id) ?? (at === 0 && id === ON_FAILURE ? definition.onFailure : undefined);
    if (!node) return undefined;
    if (at === path.length - 1) return { graph, node };
    const { nodes } = node.with;
    if (nodes?.kind !== "graph") return undefined;
    ({ graph } = nodes);
  }
  return undefined;
}

/**
 * Whether a node of a run is `onFailure` or has `if: always`, or is inside such a node. It belongs to its own run only: a run that resumes another
 * executes it with its own idempotency keys, and starts its sub-workflow anew.
 */
export function endsItsRun(definition: Definition, nodeId: string): boolean {
  const node = nodeAt(definition, outermost(nodeId))?.node;
  return node !== undefined && (node.isAlways === true || node === definition.onFailure);
}

/** The node of the definition that contains a node of a run: `each` for `each[3].send`. */
export function outermost(nodeId: string): string {
  return /^[^[.]*/.exec(nodeId)![0];
}
