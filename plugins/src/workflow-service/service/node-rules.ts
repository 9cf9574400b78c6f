import { type Adapter, type KnownParts, nodeRulesOf, type ports } from "@portico/core";
import { ruleTable } from "./node-table.ts";

/** Which service the rules are for. */
export interface NodeRulesOptions {
  /** The facts about the instance that the rules depend on. */
  readonly known: KnownParts;
  /** Whether the instance has agents; without any, nodes of type `agent` are refused. */
  readonly hasAgents: boolean;
  /** Whether the workflow service has a public address; without one, gates cannot have links. Default: false. */
  readonly hasLinks?: boolean;
}

/**
 * The rules of all kinds of nodes that a service with these adapters has: what definitions are checked against. Opens nothing. Adapters that tell their
 * rules only when they are open are left out. Throws where two kinds have one name.
 */
export function nodeRules(
  adapters: readonly Adapter[],
  { known, hasAgents, hasLinks = false }: NodeRulesOptions,
): ReadonlyMap<string, ports.NodeRules> {
  const told = adapters.map((adapter) => nodeRulesOf(adapter, known)).filter((rules) => rules !== undefined);
  return ruleTable(told, { hasAgents, hasLinks });
}
