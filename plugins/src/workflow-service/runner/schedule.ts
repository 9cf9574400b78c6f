import { type Graph, type GraphNode, type Need, isNeeded } from "../definition/definition.ts";

/** An event of a node. Each node is started or skipped once, and each started node ends once. */
export type NodeEvent =
  | { readonly type: "started"; readonly node: string }
  | { readonly type: "skipped"; readonly node: string }
  /** `case` is set for nodes that have cases. */
  | { readonly type: "completed"; readonly node: string; readonly case?: string | undefined }
  /** After its last attempt. */
  | { readonly type: "failed"; readonly node: string }
  /** The graph failed before the node ended. */
  | { readonly type: "cancelled"; readonly node: string };

export interface Decision {
  /** Nodes to start now, because their needs are met. Their `if` is evaluated after that. */
  readonly start: readonly string[];
  /** Nodes to skip now, because all their needs were skipped or took another case. */
  readonly skip: readonly string[];
  /** Whether all nodes have ended. */
  readonly completed: boolean;
  /** The node that fails the graph. No further node is started, and running nodes must be aborted. */
  readonly failed?: string | undefined;
}

type Outcome = Exclude<NodeEvent, { type: "started" }>;
type Meeting = "met" | "skipped" | "open";

/**
 * Decides the next steps in a graph from its events. It is a pure function. The rules (workflow.md): a node starts when all its needs have
 * ended and at least one of them was met. It is skipped if no need was met. A need is met if its node completed, in the named case, or failed
 * with `onError: continue`. A node with `if: always` starts when all its needs have ended. A rejection that no node depends on fails the graph,
 * like any other failure.
 */
export function schedule(graph: Graph, events: Iterable<NodeEvent>): Decision {
  const outcomes = new Map<string, Outcome>();
  const started = new Set<string>();
  for (const event of events) {
    if (event.type === "started") started.add(event.node);
    else outcomes.set(event.node, event);
  }
  for (const outcome of outcomes.values()) {
    if (isFailure(graph, outcome)) return { start: [], skip: [], completed: false, failed: outcome.node };
  }

  const start: string[] = [];
  const skip: string[] = [];
  for (const [id, node] of graph.nodes) {
    if (started.has(id) || outcomes.has(id)) continue;
    const meetings = node.needs.map((need) => meetingOf(graph.nodes.get(need.node)!, outcomes.get(need.node), need));
    if (meetings.includes("open")) continue;
    if (node.isAlways) start.push(id);
    else (meetings.length === 0 || meetings.includes("met") ? start : skip).push(id);
  }
  return { start, skip, completed: outcomes.size === graph.nodes.size };
}

/** The nodes with `if: always` to start now in a graph that has failed: those whose needs have ended. */
export function scheduleLast(graph: Graph, events: readonly NodeEvent[]): readonly string[] {
  const seen = new Set(events.map(({ node }) => node));
  const ended = new Set(events.flatMap(({ type, node }) => (type === "started" ? [] : [node])));
  return [...graph.nodes.values()].flatMap(({ id, isAlways, needs }) =>
    isAlways && !seen.has(id) && needs.every(({ node }) => ended.has(node)) ? [id] : [],
  );
}

function meetingOf(needed: GraphNode, outcome: Outcome | undefined, { case: wanted }: Need): Meeting {
  if (!outcome) return "open";
  if (outcome.type === "skipped" || outcome.type === "cancelled") return "skipped";
  // The node failed and the graph continues. A failed node has no case.
  if (outcome.type === "failed") return wanted === undefined ? "met" : "skipped";
  const meant = wanted ?? needed.rules.gate?.pass;
  return meant === undefined || meant === outcome.case ? "met" : "skipped";
}

function isFailure(graph: Graph, outcome: Outcome): boolean {
  const node = graph.nodes.get(outcome.node)!;
  if (outcome.type === "failed") return node.onError === "fail";
  const stop = node.rules.gate?.stop;
  return outcome.type === "completed" && stop !== undefined && outcome.case === stop && !isNeeded(graph, outcome.node, stop);
}
