import type { ports } from "@portico/core";
import type { Expression, Template } from "../expressions/expression.ts";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";

/** JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A workflow definition that was read, checked and compiled, so that it can be used without further checks. */
export interface Definition {
  /** 1-64 of letters, digits, `_`, `-`. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly creator: string;
  /** Whether the instance's MCP server offers it as a tool. */
  readonly isMcpTool?: true | undefined;
  /** Lowercase hex SHA-256 of `id`, a line feed and `text`. Equal definitions have equal digests. */
  readonly hash: string;
  /** The document as it was read. A run stores it as the definition that it started with. */
  readonly text: string;
  /** Schema of the trigger's body. The body is an object. */
  readonly parameters: JsonSchema;
  /** Timeout of a whole run. Time that the run waits for a person does not count. */
  readonly timeoutMs: number;
  /** Planned times at which it runs by itself. Empty if the definition was read for a run that began with it. */
  readonly schedules: readonly WorkflowSchedule[];
  readonly graph: Graph;
  /** Executed once when a run has failed. Its id is ON_FAILURE. */
  readonly onFailure?: GraphNode | undefined;
  /** Absent if the document has no outputs. The run then has no final outputs. */
  readonly outputs?: Template | undefined;
  /** The fields by which its runs can be found. */
  readonly search?: SearchFields | undefined;
  /** How many of its runs go on at the same time. Absent: any number. */
  readonly concurrency?: Concurrency | undefined;
  /** Which triggers share a run. Absent: none. */
  readonly debounce?: Debounce | undefined;
}

/** A template over the parameters of a run. Its value tells which starts belong together. */
export type StartKey = Template & { readonly source: string };

/** Triggers that follow each other shortly share one run, which gets the parameters of the last one. */
export interface Debounce {
  /** The run begins if no trigger came for this time. */
  readonly delayMs: number;
  /** The run begins at the latest at this time after its first trigger. */
  readonly maxWaitMs: number;
  /** Without it, all triggers of the workflow belong together. */
  readonly key?: StartKey | undefined;
}

/** The limit of runs that go on at the same time, and what happens to a start beyond it. */
export interface Concurrency {
  /** Runs with the same key. */
  readonly limit: number;
  /** Over the parameters. Without it, all runs of the workflow share the limit. */
  readonly key?: StartKey | undefined;
  readonly overflow: "queue" | "refuse" | "replace";
}

/** Paths of parameters and of final outputs: keys with dots between them. */
export interface SearchFields {
  readonly parameters: readonly string[];
  readonly outputs: readonly string[];
}

/** A schedule of a definition. */
export interface WorkflowSchedule {
  /** Unique in the definition; 1-64 letters, digits, `_`, `-`. */
  readonly name: string;
  readonly timing: ports.ScheduleTiming;
  /** They match the definition's schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly enabled: boolean;
  readonly jitterMs?: number | undefined;
  readonly catchUp?: number | undefined;
  readonly overlap?: ports.ScheduleOverlap | undefined;
}

/** The id of the node of `onFailure` in a run. */
export const ON_FAILURE = "onFailure";

/** Nodes that depend on each other: those of a definition, or of a `map` or `loop` node. The graph has no cycles. */
export interface Graph {
  /** Nodes by id. Every node comes after its needs. */
  readonly nodes: ReadonlyMap<string, GraphNode>;
}

export interface GraphNode {
  readonly id: string;
  /** Display name. */
  readonly name?: string | undefined;
  readonly rules: ports.NodeRules;
  readonly needs: readonly Need[];
  /** `if`. Without it, only the needs decide whether the node runs. */
  readonly condition?: Expression | undefined;
  /** `if: always`: it runs when its needs have ended, whatever their end. Only outside of `map` and `loop`. */
  readonly isAlways?: true | undefined;
  /** Values of `with` by key. The node type determines how each is compiled. */
  readonly with: Readonly<Record<string, NodeValue>>;
  /** Cases in which the node can end; undefined if it has no cases. */
  readonly cases?: ReadonlySet<string> | undefined;
  readonly retry: Retry;
  /** Timeout of one attempt. */
  readonly timeoutMs?: number | undefined;
  readonly onError: "fail" | "continue";
  /** Whether the author allows it to be executed again. If undefined, the node type decides. */
  readonly idempotent?: boolean | undefined;
  /** The secret parts of its output. */
  readonly sensitive?: SensitivePaths | undefined;
}

/** `case` names a case of the needed node. Without it, the need means the approval of a gate, or any case of another node. */
export interface Need {
  readonly node: string;
  readonly case?: string | undefined;
}

export interface Retry {
  /** Total attempts; 1 means no retry. */
  readonly attempts: number;
  readonly delayMs: number;
  /** The factor by which each delay grows. */
  readonly factor: number;
  readonly maxDelayMs: number;
  /** Whether an error is retried. */
  readonly condition?: Expression | undefined;
}

/** One value of `with`. The rules of the node type determine its form. */
export type NodeValue =
  | { readonly kind: "template"; readonly template: Template }
  | { readonly kind: "verbatim"; readonly value: unknown }
  | { readonly kind: "expression"; readonly expression: Expression }
  | { readonly kind: "expressions"; readonly expressions: ReadonlyMap<string, Expression> }
  | { readonly kind: "graph"; readonly graph: Graph }
  /** The request of a node that waits for an answer. Only the body can name `gate` and `callback`. */
  | { readonly kind: "request"; readonly request: Template; readonly body: Template | undefined };

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

/** Whether a node of the graph needs this case of another. */
export function isNeeded(graph: Graph, id: string, name: string): boolean {
  for (const { needs } of graph.nodes.values()) {
    if (needs.some((need) => need.node === id && need.case === name)) return true;
  }
  return false;
}

/** A node and all nodes that depend on it, directly or through others. */
export function withDependents(graph: Graph, id: string): readonly string[] {
  const found = new Set([id]);
  // Every node comes after its needs.
  for (const [other, { needs }] of graph.nodes) if (needs.some(({ node }) => found.has(node))) found.add(other);
  return [...found];
}
