import type { ports } from "@portico/core";
import { builtInKinds, builtInNodes } from "../kinds/built-in-kinds.ts";
import type { NodeKind } from "../runner/running.ts";

/** The kinds of nodes of an instance. */
export interface NodeTable {
  /** All rules by type: definitions are checked against them. */
  readonly rules: ReadonlyMap<string, ports.NodeRules>;
  /** The kinds that give a run its shape: the runner plays them. */
  readonly kinds: ReadonlyMap<string, NodeKind>;
  /** All others: they have `run`. */
  readonly nodes: ReadonlyMap<string, ports.WorkflowNode>;
}

const NO_AGENTS = "No agents are configured in this instance: nodes of type agent cannot be used here";

/** What the table depends on. */
export interface NodeTableOptions {
  readonly hasAgents: boolean;
  /** Types of built-in kinds that adapters replace. Default: none. */
  readonly replaced?: readonly string[] | undefined;
}

/** Throws Error if two kinds have one name, because a definition could not say which of them it means. */
export function createNodeTable(brought: readonly ports.WorkflowNode[], options: NodeTableOptions): NodeTable {
  const nodes = [...builtInNodes, ...brought];
  return { rules: ruleTable(brought, options), kinds: byType(kindsBut(options.replaced)), nodes: byType(nodes) };
}

/** The table of these rules and those of the built-in kinds, against which definitions are checked. Throws as `createNodeTable` does. */
export function ruleTable(
  brought: readonly ports.NodeRules[],
  { hasAgents, replaced }: NodeTableOptions,
): ReadonlyMap<string, ports.NodeRules> {
  const rules = new Map<string, ports.NodeRules>();
  for (const kind of [...kindsBut(replaced), ...builtInNodes, ...brought]) {
    if (rules.has(kind.type)) throw new Error(`Two kinds of workflow nodes are called "${kind.type}"`);
    rules.set(kind.type, kind);
  }
  const agent = rules.get("agent");
  // It exists all the same: a definition that names it gets a sentence instead of "unknown".
  if (agent && !hasAgents && !replaced?.includes("agent"))
    rules.set("agent", { ...agent, check: () => [{ path: [], message: NO_AGENTS }] });
  return rules;
}

function kindsBut(replaced: readonly string[] = []): readonly NodeKind[] {
  return builtInKinds.filter(({ type }) => !replaced.includes(type));
}

function byType<K extends ports.NodeRules>(kinds: readonly K[]): ReadonlyMap<string, K> {
  return new Map(kinds.map((kind) => [kind.type, kind]));
}
