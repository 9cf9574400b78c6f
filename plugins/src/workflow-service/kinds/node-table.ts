import { ports, type Adapter, type KnownParts, nodeRulesOf } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import * as v from "valibot";
import type { NodeKind } from "../runner/running.ts";
import { agentKind } from "./agent.ts";
import { branchKind } from "./branch.ts";
import { callbackKind } from "./callback.ts";
import { humanGateKind } from "./human-gate.ts";
import { loopKind, mapKind } from "./map-and-loop.ts";
import { waitKind } from "./wait.ts";
import { workflowKind } from "./workflow.ts";

/** The kinds of nodes of an instance. */
interface NodeTable {
  /** All rules by type: definitions are checked against them. */
  readonly rules: ReadonlyMap<string, ports.NodeRules>;
  /** The kinds that give a run its shape: the runner plays them. */
  readonly kinds: ReadonlyMap<string, NodeKind>;
  /** All others: they have `run`. */
  readonly nodes: ReadonlyMap<string, ports.WorkflowNode>;
}

/** What the table depends on. */
interface NodeTableOptions {
  readonly hasAgents: boolean;
  /** Whether the workflow service has a public address, so that gates can have links. */
  readonly hasLinks: boolean;
  /** Types of built-in kinds that adapters replace. Default: none. */
  readonly replaced?: readonly string[] | undefined;
}

const NO_AGENTS = "No agents are configured in this instance: nodes of type agent cannot be used here";

/** Throws Error if two kinds have one name, because a definition could not say which of them it means. */
export function createNodeTable(brought: readonly ports.WorkflowNode[], options: NodeTableOptions): NodeTable {
  const nodes = [...notReplaced(builtInNodes, options.replaced), ...brought];
  return { rules: ruleTable(brought, options), kinds: byType(notReplaced(builtInKinds, options.replaced)), nodes: byType(nodes) };
}

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
  const rules = adapters.map((adapter) => nodeRulesOf(adapter, known)).filter((rules) => rules !== undefined);
  return ruleTable(rules, { hasAgents, hasLinks });
}

/** The table of these rules and those of the built-in kinds, against which definitions are checked. Throws as `createNodeTable` does. */
function ruleTable(
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
  const http = rules.get("http");
  for (const [type, faults] of [
    ["human_gate", gateFaults],
    ["callback", callbackFaults],
  ] as const) {
    const kind = rules.get(type)!;
    const check = (written: Readonly<Record<string, unknown>>) => [
      ...(kind.check?.(written) ?? []),
      ...faults(written, { http, hasLinks }),
    ];
    rules.set(type, { ...kind, check });
  }
  return rules;
}

const NO_LINKS = "Approval links need the setting workflow.publicUrl: the address of the workflow service for people";

const NO_CALLBACKS = "Callbacks need the setting workflow.publicUrl: the address of the workflow service for other services";

const NO_HTTP = "This instance has no nodes of type http, which send its request";

/** The facts about the instance that waiting nodes depend on. */
interface WaitingInstance {
  readonly http: ports.NodeRules | undefined;
  readonly hasLinks: boolean;
}

type Written = Readonly<Record<string, unknown>>;

/** Problems of a gate that depend on the instance. */
function gateFaults({ notify, links }: Written, instance: WaitingInstance): readonly ports.NodeFault[] {
  const isWithout = links === undefined || links === false || instance.hasLinks;
  return [...(isWithout ? [] : [{ path: ["links"], message: NO_LINKS }]), ...requestFaults("notify", notify, instance)];
}

/** Problems of a callback that depend on the instance. */
function callbackFaults({ request }: Written, instance: WaitingInstance): readonly ports.NodeFault[] {
  return [...(instance.hasLinks ? [] : [{ path: [], message: NO_CALLBACKS }]), ...requestFaults("request", request, instance)];
}

/** Problems of the request that a waiting node sends. */
function requestFaults(key: string, request: unknown, { http }: WaitingInstance): readonly ports.NodeFault[] {
  if (!isRecord(request)) return [];
  if (!http) return [{ path: [key], message: NO_HTTP }];
  const faults = http.check?.({ method: "POST", ...request, key: "node" }) ?? [];
  return faults.map(({ path, message }) => ({ path: [key, ...path], message }));
}

function notReplaced<K extends ports.NodeRules>(builtIn: readonly K[], replaced: readonly string[] = []): readonly K[] {
  return builtIn.filter(({ type }) => !replaced.includes(type));
}

function byType<K extends ports.NodeRules>(kinds: readonly K[]): ReadonlyMap<string, K> {
  return new Map(kinds.map((kind) => [kind.type, kind]));
}

const failInput = v.strictObject({
  message: v.pipe(v.string(), v.minLength(1, "A failure has a message"), v.description("The error message.")),
});

/** Fails with the author's message. */
const failNode: ports.WorkflowNode<v.InferOutput<typeof failInput>> = {
  type: "fail",
  input: failInput,
  repeatable: true,
  pure: true,
  async run({ input: { message } }) {
    throw new ports.NodeFailed("failed", message, { retryable: false });
  },
};

const attachmentInput = v.strictObject({
  attachment: v.pipe(
    v.string(),
    v.nonEmpty(),
    v.description("The `fileReference` of an attachment that the user of the run's grant has uploaded."),
  ),
});

/** Copies an attachment of the user whom the run's grant names into a file of the run (specification 4.5). */
const attachmentNode: ports.WorkflowNode<v.InferOutput<typeof attachmentInput>> = {
  type: "attachment",
  input: attachmentInput,
  repeatable: true,
  async run({ input: { attachment }, files }) {
    if (files) return { file: await files.copyAttachment(attachment) };
    const message = "This node has no files: the service has no storage for them, or the node's output is sensitive";
    throw new ports.NodeFailed("files_unavailable", message, { retryable: false });
  },
};

/** The kinds that every workflow service has and that control a run. Adapters cannot provide them, because they need internals of the run. */
export const builtInKinds: readonly NodeKind[] = [
  ...[branchKind, callbackKind, mapKind, loopKind, waitKind, humanGateKind, workflowKind, agentKind],
];

/** The nodes that every workflow service has and that an adapter could provide, too. */
export const builtInNodes: readonly ports.WorkflowNode[] = [failNode, attachmentNode];
