import type { Graph } from "./definition.ts";

/** Whether a node of the graph needs this case of another. */
export function isNeeded(graph: Graph, id: string, name: string): boolean {
  for (const { needs } of graph.nodes.values()) {
    if (needs.some((need) => need.node === id && need.case === name)) return true;
  }
  return false;
}
