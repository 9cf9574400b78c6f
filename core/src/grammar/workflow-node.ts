import { type Adapter, defineAdapter } from "./adapter.ts";
import type { Given, Needs } from "./port.ts";
import type { ToolDefinition } from "../ports/tools.ts";
import { type NodeRules, type NodeWork, type WorkflowNode, workflowNodes } from "../ports/workflow-nodes.ts";
import type { Scope } from "./scope.ts";

/**
 * Facts about an instance for the rules of a kind of node. None of them waits: rules check the facts that are known now, and skip
 * the rest.
 */
export interface KnownParts {
  /** Ids of its model providers. */
  readonly providers: readonly string[];
  /** The models of a provider. Undefined while they are unknown. */
  models(provider: string): readonly string[] | undefined;
  /** Number of its tool sources. */
  readonly toolSources: number;
  /** A known tool. */
  tool(id: string): ToolDefinition | undefined;
  /** Whether every source has reported its tools, so that any other ID is unknown. */
  knowsAllTools(): boolean;
}

/** Known parts of a kind that does not use them. */
const NOTHING: KnownParts = {
  providers: [],
  models: () => undefined,
  toolSources: 0,
  tool: () => undefined,
  knowsAllTools: () => false,
};

/** The input of `defineWorkflowNode`. */
export interface WorkflowNodeSpec<N extends Needs, O, I> {
  /** `workflow-nodes/` and the type. */
  readonly name: string;
  readonly needs: N;
  /** The syntax of the node in definitions. Pure: definitions are checked with it before an app is open, and without an app. */
  rules(options: O, known: KnownParts): NodeRules<I>;
  /** Open the resources of its work. `known` contains the facts that the rules ask about, and may lack others. */
  open(
    given: Given<N>,
    options: O,
    scope: Scope,
  ): { readonly known?: Partial<KnownParts>; run(work: NodeWork<I>): Promise<unknown> };
}

/** An adapter of a workflow node whose rules are available without opening it. */
export interface WorkflowNodeAdapter extends Adapter<typeof workflowNodes> {
  rules(known: KnownParts): NodeRules;
}

/**
 * Declare a kind of workflow node whose rules are known before it is open, so that `portico workflow check` and editors know it
 * without a running service. `defineAdapter` with the port `workflowNodes` declares a kind whose rules are known only when it is
 * open.
 */
export function defineWorkflowNode<const N extends Needs, O = void, I = any>(
  spec: WorkflowNodeSpec<N, O, I>,
): (options: O) => WorkflowNodeAdapter {
  const { name, needs, rules } = spec;
  const make = defineAdapter({
    name,
    port: workflowNodes,
    needs,
    open(given, options: O, scope): WorkflowNode<I> {
      const { known, run } = spec.open(given, options, scope);
      return { ...rules(options, { ...NOTHING, ...known }), run };
    },
  });
  return (options) => ({ ...make(options), rules: (known) => rules(options, known) });
}

/** The rules of an adapter's node. Undefined for an adapter whose rules are known only when it is open. Opens nothing. */
export function nodeRulesOf(adapter: Adapter, known: KnownParts): NodeRules | undefined {
  return (adapter as Partial<WorkflowNodeAdapter>).rules?.(known);
}
