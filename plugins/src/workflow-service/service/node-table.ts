import type { ports } from "@portico/core";
import { shapeNodes } from "../nodes/shape-nodes.ts";

/** The kinds of nodes of an instance. */
export interface NodeTable {
  /** All, by type: what definitions are checked against. */
  readonly rules: ReadonlyMap<string, ports.NodeRules>;
  /** Those that adapters brought. */
  readonly nodes: ReadonlyMap<string, ports.WorkflowNode>;
}

const NO_AGENTS = "No agents are configured in this instance: nodes of type agent cannot be used here";

/** Throws Error where two kinds have one name: which of them a definition means would be anybody's guess. */
export function createNodeTable(nodes: readonly ports.WorkflowNode[], { hasAgents }: { readonly hasAgents: boolean }): NodeTable {
  const rules = new Map<string, ports.NodeRules>(shapeNodes);
  const agent = rules.get("agent");
  // It exists all the same: a definition that names it gets a sentence instead of "unknown".
  if (agent && !hasAgents) rules.set("agent", { ...agent, check: () => [{ path: [], message: NO_AGENTS }] });
  for (const node of nodes) {
    if (rules.has(node.type)) throw new Error(`Two kinds of workflow nodes are called "${node.type}"`);
    rules.set(node.type, node);
  }
  return { rules, nodes: new Map(nodes.map((node) => [node.type, node])) };
}
