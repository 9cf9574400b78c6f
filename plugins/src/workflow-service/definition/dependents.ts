import type { Graph } from "./definition.ts";

/** A node and all nodes that depend on it, directly or through others. */
export function withDependents(graph: Graph, id: string): readonly string[] {
  const found = new Set([id]);
  // Every node comes after its needs.
  for (const [other, { needs }] of graph.nodes) if (needs.some(({ node }) => found.has(node))) found.add(other);
  return [...found];
}
