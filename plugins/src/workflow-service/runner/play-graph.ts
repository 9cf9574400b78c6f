import { ports } from "@portico/core";
import type { Graph, GraphNode } from "../definition/definition.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import { isWoundUp } from "./is-wound-up.ts";
import { NodeInterrupted } from "./node-interrupted.ts";
import { playNode } from "./play-node.ts";
import type { Frame, GraphOutcome, NodeOutcome, Running } from "./running.ts";
import { type NodeEvent, schedule } from "./schedule.ts";

/** The error code of a gate's rejection if no node depends on it. */
const REJECTED: NodeError = { code: "rejected", message: "rejected" };

/**
 * Executes the nodes of a graph as `schedule` decides. The frame receives the results that expressions can name. When the promise is settled,
 * no node runs any more. Rejects with NodeInterrupted, or with the abort reason of the work's signal.
 */
export async function playGraph(running: Running, graph: Graph, outer: Frame): Promise<GraphOutcome> {
  if (outer.signal.aborted) return { type: "aborted" };
  const over = new AbortController();
  const play = new GraphPlay(running, graph, { ...outer, signal: over.signal });
  const abort = () => play.abort();
  outer.signal.addEventListener("abort", abort, { once: true });
  // True if the run is stopped or parked. Nodes that have not started will then start in a later execution.
  let isGoingOn = false;
  try {
    return await play.run();
  } catch (error) {
    const { signal } = running.context;
    isGoingOn = signal.aborted && error === signal.reason && !(error instanceof ports.WorkCancelled);
    throw error;
  } finally {
    outer.signal.removeEventListener("abort", abort);
    isGoingOn ||= outer.signal.aborted && !isWoundUp(running, outer);
    if (play.isWorking) {
      over.abort(isGoingOn ? running.context.signal.reason : undefined);
      await play.settled();
    }
    if (!isGoingOn) play.tellCancelled();
  }
}

class GraphPlay {
  readonly #running: Running;
  readonly #graph: Graph;
  readonly #frame: Frame;
  readonly #events: NodeEvent[] = [];
  readonly #errors = new Map<string, NodeError>();
  readonly #working = new Set<Promise<void>>();
  #thrown: { readonly error: unknown } | undefined;
  #isAborted = false;
  #wake: () => void = () => {};

  constructor(running: Running, graph: Graph, frame: Frame) {
    this.#running = running;
    this.#graph = graph;
    this.#frame = frame;
  }

  async run(): Promise<GraphOutcome> {
    for (;;) {
      if (this.#thrown) throw this.#thrown.error;
      if (this.#isAborted) return { type: "aborted" };
      const { start, skip, completed, failed } = schedule(this.#graph, this.#events);
      if (completed) return { type: "completed" };
      if (failed !== undefined) {
        return { type: "failed", error: this.#errors.get(failed) ?? REJECTED, nodeId: `${this.#frame.prefix}${failed}` };
      }
      for (const id of skip) this.#skip(this.#nodeOf(id));
      for (const id of start) this.#start(this.#nodeOf(id));
      // Skipped nodes can immediately decide about other nodes.
      if (skip.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Called from outside. No further nodes are started. */
  abort(): void {
    this.#isAborted = true;
    this.#wake();
  }

  get isWorking(): boolean {
    return this.#working.size > 0;
  }

  /** Resolves when no node runs any more. */
  async settled(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working);
  }

  /** Reports nodes that never started, if the graph did not end by itself. */
  tellCancelled(): void {
    const seen = new Set(this.#events.map(({ node }) => node));
    for (const node of this.#graph.nodes.values()) if (!seen.has(node.id)) this.#tellUnplayed(node, "cancelled");
  }

  #start(node: GraphNode): void {
    this.#events.push({ type: "started", node: node.id });
    const working: Promise<void> = playNode(this.#running, node, this.#frame, playGraph)
      .then(
        (outcome) => this.#end(node, outcome),
        (error: unknown) => {
          // An interrupted node is the cause, so its error has priority over the errors that follow from it.
          if (!this.#thrown || error instanceof NodeInterrupted) this.#thrown = { error };
        },
      )
      .finally(() => {
        this.#working.delete(working);
        this.#wake();
      });
    this.#working.add(working);
  }

  #end(node: GraphNode, outcome: NodeOutcome): void {
    const { nodes, completed } = this.#frame;
    switch (outcome.type) {
      case "skipped":
        return this.#skip(node);
      case "completed":
        nodes[node.id] = { status: "completed", output: outcome.output };
        this.#events.push({ type: "completed", node: node.id, case: outcome.case });
        completed?.();
        return;
      case "failed":
        nodes[node.id] = { status: "failed", error: outcome.error };
        this.#errors.set(node.id, outcome.error);
        this.#events.push({ type: "failed", node: node.id });
        return;
      case "aborted":
        return;
    }
  }

  #skip(node: GraphNode): void {
    this.#frame.nodes[node.id] = { status: "skipped" };
    this.#events.push({ type: "skipped", node: node.id });
    this.#tellUnplayed(node, "skipped");
  }

  #tellUnplayed({ id, rules, name }: GraphNode, status: "skipped" | "cancelled"): void {
    // An earlier execution finished or began it.
    if (status === "cancelled" && this.#running.earlier.tellUnreached(`${this.#frame.prefix}${id}`)) return;
    this.#running.live.ledger.add({
      ...{ kind: "end", nodeId: `${this.#frame.prefix}${id}`, type: rules.type, name, status, attempts: 0 },
    });
  }

  #nodeOf(id: string): GraphNode {
    return this.#graph.nodes.get(id)!;
  }
}
