import type { ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
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
  /** Whether the workflow service has a public address, so that gates can have links. */
  readonly hasLinks: boolean;
  /** Types of built-in kinds that adapters replace. Default: none. */
  readonly replaced?: readonly string[] | undefined;
}

/** Throws Error if two kinds have one name, because a definition could not say which of them it means. */
export function createNodeTable(brought: readonly ports.WorkflowNode[], options: NodeTableOptions): NodeTable {
  const nodes = [...notReplaced(builtInNodes, options.replaced), ...brought];
  return { rules: ruleTable(brought, options), kinds: byType(notReplaced(builtInKinds, options.replaced)), nodes: byType(nodes) };
}

/** The table of these rules and those of the built-in kinds, against which definitions are checked. Throws as `createNodeTable` does. */
export function ruleTable(
  brought: readonly ports.NodeRules[],
  { hasAgents, hasLinks, replaced }: NodeTableOptions,
): ReadonlyMap<string, ports.NodeRules> {
  const rules = new Map<string, ports.NodeRules>();
  for (const kind of [...notReplaced(builtInKinds, replaced), ...notReplaced(builtInNodes, replaced), ...brought]) {
    if (rules.has(kind.type)) throw new Error(`Two kinds of workflow nodes are called "${kind.type}"`);
    rules.set(kind.type, kind);
  }
  const agent = rules.get("agent");
  // It exists all the same: a definition that names it gets a sentence instead of "unknown".
  if (agent && !hasAgents && !replaced?.includes("agent"))
    rules.set("agent", { ...agent, check: () => [{ path: [], message: NO_AGENTS }] });
  const gate = rules.get("human_gate")!;
  rules.set("human_gate", {
    ...gate,
    check: (written) => [...(gate.check?.(written) ?? []), ...gateFaults(written, { http: rules.get("http"), hasLinks })],
  });
  return rules;
}

const NO_LINKS = "Approval links need the setting workflow.publicUrl: the address of the workflow service for people";
const NO_HTTP = "This instance has no nodes of type http, which send notifications";

/** Problems of a gate that depend on the instance. */
function gateFaults(
  { notify, links }: Readonly<Record<string, unknown>>,
  { http, hasLinks }: { readonly http: ports.NodeRules | undefined; readonly hasLinks: boolean },
): readonly ports.NodeFault[] {
  const faults: ports.NodeFault[] =
    links === undefined || links === false || hasLinks ? [] : [{ path: ["links"], message: NO_LINKS }];
  if (!isRecord(notify)) return faults;
  if (!http) return [...faults, { path: ["notify"], message: NO_HTTP }];
  const ofRequest = http.check?.({ method: "POST", ...notify, key: "node" }) ?? [];
  return [...faults, ...ofRequest.map(({ path, message }) => ({ path: ["notify", ...path], message }))];
}

function notReplaced<K extends ports.NodeRules>(builtIn: readonly K[], replaced: readonly string[] = []): readonly K[] {
  return builtIn.filter(({ type }) => !replaced.includes(type));
}

function byType<K extends ports.NodeRules>(kinds: readonly K[]): ReadonlyMap<string, K> {
  return new Map(kinds.map((kind) => [kind.type, kind]));
}
