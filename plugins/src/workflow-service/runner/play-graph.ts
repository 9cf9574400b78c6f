import { ports } from "@portico/core";
import type { Graph, GraphNode } from "../definition/definition.ts";
import { WIND_UP_MS } from "../contracts/limits.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import { isWoundUp, type Frame, type GraphOutcome, type NodeOutcome, type Running } from "./running.ts";
import { NodeInterrupted } from "./attempt.ts";
import { playNode } from "./play-node.ts";
import { type NodeEvent, schedule, scheduleLast } from "./schedule.ts";
import type { RunError } from "../runs/run-record.ts";

/** The error code of a gate's rejection if no node depends on it. */
const REJECTED: NodeError = { code: "rejected", message: "rejected" };

/**
 * Executes the nodes of a graph as `schedule` decides. The frame receives the results that expressions can name. When the promise is settled,
 * no node runs any more. Rejects with NodeInterrupted, or with the abort reason of the work's signal.
 */
export async function playGraph(running: Running, graph: Graph, outer: Frame): Promise<GraphOutcome> {
  if (outer.signal.aborted) return { type: "aborted" };
  const over = new AbortController();
  const last = new AbortController();
  let endsAt: number | undefined;
  const { clock } = running.services;
  const winds = outer.prefix === "" && hasAlways(graph);
  const left = () => (endsAt === undefined ? (outer.left?.() ?? running.deadline.left()) : Math.max(0, endsAt - clock.now()));
  const play = new GraphPlay(running, graph, {
    usual: { ...outer, signal: over.signal },
    always: { ...outer, signal: last.signal, left },
    known: winds ? earlierWindUp(running)?.outcome : undefined,
  });
  const abort = () => play.abort();
  outer.signal.addEventListener("abort", abort, { once: true });
  // True if the run is stopped or parked. Nodes that have not started will then start in a later execution.
  let isGoingOn = false;
  let timer: ports.Timer | undefined;
  try {
    const outcome = await play.run();
    if (outcome.type === "completed" || !winds) return outcome;
    over.abort();
    // As a step, so that restarts neither prolong the time nor change the first error.
    const begun = await running.context.step<WindUp>(WIND_UP, async () => ({ at: clock.now(), outcome }), { repeatable: true });
    endsAt = begun.at + WIND_UP_MS;
    timer = clock.after(left(), () => last.abort());
    await play.windUp();
    return begun.outcome;
  } catch (error) {
    const { signal } = running.context;
    isGoingOn = signal.aborted && error === signal.reason && !(error instanceof ports.WorkCancelled);
    throw error;
  } finally {
    timer?.cancel();
    outer.signal.removeEventListener("abort", abort);
    isGoingOn ||= outer.signal.aborted && !isWoundUp(running, outer);
    if (play.isWorking) {
      for (const each of [over, last]) each.abort(isGoingOn ? running.context.signal.reason : undefined);
      await play.settled();
    }
    if (!isGoingOn) play.recordCancelled();
  }
}

/**
 * Executes `onFailure` of a failed run, once: its attempts are steps of the engine. Its own failure is in history, and does not change why the run
 * failed. Returns that reason: after a restart the one with which `onFailure` began. Rejects with the abort reason of the work's signal.
 */
export async function playOnFailure(
  running: Running,
  { node, nodes, error }: { readonly node: GraphNode; readonly nodes: Frame["nodes"]; readonly error: RunError },
): Promise<RunError> {
  const { context, record, services, live } = running;
  const { clock } = services;
  const begun = await context.step("run failed", async () => ({ error, at: clock.now() }), { repeatable: true });
  const { code, message, nodeId = null } = begun.error;
  const left = () => Math.max(0, begun.at + WIND_UP_MS - clock.now());
  const over = new AbortController();
  const timer = clock.after(left(), () => over.abort());
  const { runId, workflowId, startedAt } = record;
  const failure = { runId, workflowId, nodeId, code, message, startedAt, endedAt: new Date(begun.at).toISOString() };
  try {
    const { type } = await playNode(running, node, { prefix: "", nodes, failure, left, signal: over.signal }, playGraph);
    if (type === "skipped")
      live.ledger.add({ kind: "end", nodeId: node.id, type: node.rules.type, name: node.name, status: "skipped", attempts: 0 });
  } catch (thrown) {
    // A process ended while it was executing, and it may not be repeated. History has it as failed.
    if (!(thrown instanceof NodeInterrupted)) throw thrown;
  } finally {
    timer.cancel();
  }
  return begun.error;
}

/** How a graph ended whose nodes with `if: always` are executed after that. */
interface WindUp {
  readonly at: number;
  readonly outcome: GraphOutcome;
}

/** The name of its step. */
const WIND_UP = "run winds up";

/** What an earlier execution of the run had stored. */
function earlierWindUp({ context }: Running): WindUp | undefined {
  return context.earlier().find(({ kind, name }) => kind === "step" && name === WIND_UP)?.value as WindUp | undefined;
}

function hasAlways({ nodes }: Graph): boolean {
  return nodes.values().some(({ isAlways }) => isAlways);
}

/** The frames of a graph. Both have the same results. */
interface Frames {
  readonly usual: Frame;
  /** For nodes with `if: always`, which go on after the graph has failed. */
  readonly always: Frame;
  /** How an earlier execution of the graph ended. */
  readonly known: GraphOutcome | undefined;
}

class GraphPlay {
  readonly #running: Running;
  readonly #graph: Graph;
  readonly #frame: Frame;
  readonly #always: Frame;
  readonly #known: GraphOutcome | undefined;
  readonly #events: NodeEvent[] = [];
  readonly #errors = new Map<string, NodeError>();
  readonly #working = new Map<Promise<void>, GraphNode>();
  #thrown: { readonly error: unknown } | undefined;
  #isAborted = false;
  #wake: () => void = () => {};

  constructor(running: Running, graph: Graph, { usual, always, known }: Frames) {
    this.#running = running;
    this.#graph = graph;
    this.#frame = usual;
    this.#always = always;
    this.#known = known;
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
      // All that an earlier execution reached has been reached again.
      if (this.#known && skip.length === 0 && !this.isWorking) return this.#known;
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
    while (this.#working.size > 0) await Promise.all(this.#working.keys());
  }

  /**
   * Executes the nodes with `if: always` that have not ended, after the graph has failed or its time has elapsed. To be called once, when the
   * signal of the other nodes has aborted.
   */
  async windUp(): Promise<void> {
    const usual = () => [...this.#working].flatMap(([working, { isAlways }]) => (isAlways ? [] : [working]));
    for (let working = usual(); working.length > 0; working = usual()) await Promise.all(working);
    for (const node of this.#graph.nodes.values()) if (!node.isAlways) this.#cancel(node);
    for (;;) {
      if (this.#thrown) throw this.#thrown.error;
      // The nodes that have no time any more are recorded as cancelled.
      if (!this.#always.signal.aborted) for (const id of scheduleLast(this.#graph, this.#events)) this.#start(this.#nodeOf(id));
      if (!this.isWorking) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Reports nodes that never started, if the graph did not end by itself. */
  recordCancelled(): void {
    const seen = new Set(this.#events.map(({ node }) => node));
    for (const node of this.#graph.nodes.values()) if (!seen.has(node.id)) this.#recordUnplayed(node, "cancelled");
  }

  #start(node: GraphNode): void {
    this.#events.push({ type: "started", node: node.id });
    const frame = node.isAlways ? this.#always : this.#frame;
    const working: Promise<void> = playNode(this.#running, node, frame, playGraph)
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
    this.#working.set(working, node);
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
        if (this.#isAfterwards(node)) return;
        nodes[node.id] = { status: "failed", error: outcome.error };
        this.#errors.set(node.id, outcome.error);
        this.#events.push({ type: "failed", node: node.id });
        return;
      case "aborted":
        return;
    }
  }

  /** Whether the failure of another node, or the time of the run, aborted the node in an earlier execution: its attempt is stored as failed. */
  #isAfterwards({ id, onError, isAlways }: GraphNode): boolean {
    const first = this.#known?.type === "failed" ? this.#known.nodeId : undefined;
    return this.#known !== undefined && !isAlways && onError === "fail" && id !== first;
  }

  /** The node has not ended, and will not. */
  #cancel(node: GraphNode): void {
    const seen = this.#events.filter((event) => event.node === node.id);
    if (seen.some(({ type }) => type !== "started")) return;
    if (seen.length === 0) this.#recordUnplayed(node, "cancelled");
    this.#frame.nodes[node.id] = { status: "cancelled" };
    this.#events.push({ type: "cancelled", node: node.id });
  }

  #skip(node: GraphNode): void {
    this.#frame.nodes[node.id] = { status: "skipped" };
    this.#events.push({ type: "skipped", node: node.id });
    this.#recordUnplayed(node, "skipped");
  }

  #recordUnplayed({ id, rules, name }: GraphNode, status: "skipped" | "cancelled"): void {
    // An earlier execution finished or began it.
    if (status === "cancelled" && this.#running.earlier.recordUnreached(`${this.#frame.prefix}${id}`)) return;
    this.#running.live.ledger.add({
      ...{ kind: "end", nodeId: `${this.#frame.prefix}${id}`, type: rules.type, name, status, attempts: 0 },
    });
  }

  #nodeOf(id: string): GraphNode {
    return this.#graph.nodes.get(id)!;
  }
}
