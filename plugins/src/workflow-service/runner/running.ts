import type { ports, StoreRetry } from "@portico/core";
import type { Definition, Graph, GraphNode } from "../definition/definition.ts";
import type { ExpressionScope } from "../definition/expression.ts";
import type { SensitivePaths } from "../definition/sensitive-paths.ts";
import type { Gates } from "../runs/gates.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import type { LiveRun } from "../runs/live-runs.ts";
import type { RunRecord } from "../runs/run-records.ts";
import type { Deadline } from "./deadline.ts";
import type { GateBoard } from "./gate-board.ts";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";

/** One execution of a run: what all its nodes share. */
export interface Running {
  readonly context: ports.WorkContext;
  readonly definition: Definition;
  readonly record: RunRecord;
  readonly live: LiveRun;
  /** What expressions see of the run itself. */
  readonly scope: Pick<ExpressionScope, "parameters" | "run" | "secrets" | "derived">;
  /** What may not be shown, or stored as it is. */
  readonly secrecy: RunSecrecy;
  readonly deadline: Deadline;
  readonly board: GateBoard;
  /** How its calls of stores are repeated: a run does not fail because a store is away. */
  readonly storeRetry: StoreRetry;
  readonly world: World;
}

/** What nodes reach beyond their run. */
export interface World {
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly gates: Gates;
  /** How nodes are played, by type: the service's own kinds. */
  readonly kinds: ReadonlyMap<string, NodeKind>;
  /** How nodes of all other types are. */
  readonly nodes: ReadonlyMap<string, ports.WorkflowNode>;
  /** Where agents are configured. */
  readonly turns: ports.BackgroundTurns | undefined;
  /** The user on whose behalf a run's agents work, if no other user is known. */
  owner(signal: AbortSignal): Promise<string | undefined>;
  /** Starts a run for a node; the same id again is the same run. Throws NodeFailed where it cannot be. */
  startChild(child: ChildRun): Promise<void>;
  cancelRun(runId: string, reason: string): Promise<void>;
}

export interface ChildRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly parameters: unknown;
  readonly parent: RunRecord;
  readonly nodeId: string;
  /** What of its outputs the node says is a secret. */
  readonly sensitive?: SensitivePaths | undefined;
  /** What its parent may not have stored as it is. */
  readonly secrecy: RunSecrecy;
}

/** Where a graph is played: the definition's own, or one inside a `map` or `loop` node. */
export interface Frame {
  /** Before the ids of its nodes: `""`, `summarize[3].`. */
  readonly prefix: string;
  /** What expressions see of nodes, growing as they end. */
  readonly nodes: Record<string, { readonly status: string; readonly output?: unknown }>;
  readonly item?: unknown;
  readonly index?: number | undefined;
  readonly previous?: unknown;
  /** Aborts when the graph ends while some nodes still run: another node failed, or the run's time has elapsed. */
  readonly signal: AbortSignal;
  /** Told of every node of it that has completed. */
  completed?(): void;
}

/** A kind of node that gives a run its shape: its rules, and how the runner plays a node of it. */
export interface NodeKind extends ports.NodeRules {
  /** Keys of `with` that are not filled in when the node starts. */
  readonly later?: ReadonlySet<string> | undefined;
  /** Whether it can wait so long that the engine parks the run. */
  readonly waits?: boolean | undefined;
  /** Throws NodeFailed, AttemptsFailed and NodeInterrupted. */
  play(play: NodePlay): Promise<NodeResult>;
}

/** One node as it is played. */
export interface NodePlay {
  readonly running: Running;
  readonly node: GraphNode;
  /** With its place inside `map` and `loop`: `summarize[3].model`. */
  readonly nodeId: string;
  readonly frame: Frame;
  /** Its values, filled in. */
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Maximum milliseconds of a wait: the node wakes when its time, or the run's time, has elapsed. */
  left(): number;
  readonly playGraph: PlayGraph;
}

/** Plays the nodes of a graph in a frame. */
export type PlayGraph = (running: Running, graph: Graph, frame: Frame) => Promise<GraphOutcome>;

/** What a node came to, with what is told of it. */
export interface NodeResult {
  readonly output: unknown;
  readonly case?: string | undefined;
  readonly attempts: number;
  /** Milliseconds since 1970, where they were remembered. */
  readonly startedAt?: number | undefined;
  readonly endedAt?: number | undefined;
}

/** How a node ended. */
export type NodeOutcome =
  | { readonly type: "skipped" }
  | { readonly type: "completed"; readonly output: unknown; readonly case?: string | undefined }
  | { readonly type: "failed"; readonly error: NodeError }
  /** Its graph ended before the node ended. */
  | { readonly type: "aborted" };

/** How a graph ended. */
export type GraphOutcome =
  | { readonly type: "completed" }
  | { readonly type: "failed"; readonly error: NodeError; readonly nodeId: string }
  /** From without: its frame's signal aborted. */
  | { readonly type: "aborted" };

/** Everything that expressions of a frame can name. */
export function scopeOf(running: Running, { nodes, item, index, previous }: Frame): ExpressionScope {
  return { ...running.scope, nodes, item, index, previous };
}
