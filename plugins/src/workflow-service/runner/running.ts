import type { ports } from "@portico/core";
import type { Definition } from "../definition/definition.ts";
import type { ExpressionScope } from "../definition/expression.ts";
import type { Gates } from "../runs/gates.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import type { LiveRun } from "../runs/live-runs.ts";
import type { RunRecord } from "../runs/run-records.ts";
import type { Deadline } from "./deadline.ts";
import type { GateBoard } from "./gate-board.ts";
import type { Mask } from "./mask.ts";

/** One execution of a run: what all its nodes share. */
export interface Running {
  readonly context: ports.WorkContext;
  readonly definition: Definition;
  readonly record: RunRecord;
  readonly live: LiveRun;
  /** What expressions see of the run itself. */
  readonly scope: Pick<ExpressionScope, "parameters" | "run" | "secrets">;
  /** Hides secrets in whatever is shown or kept. */
  readonly mask: Mask;
  readonly deadline: Deadline;
  readonly board: GateBoard;
  readonly world: World;
}

/** What nodes reach beyond their run. */
export interface World {
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly gates: Gates;
  readonly nodes: ReadonlyMap<string, ports.WorkflowNode>;
  /** Where agents are configured. */
  readonly turns: ports.BackgroundTurns | undefined;
  /** Whose a run's agents work, where nobody is known. */
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
  /** Aborts when the graph is over though something in it still works: another node failed, or the run's time is over. */
  readonly signal: AbortSignal;
  /** Told of every node of it that has completed. */
  completed?(): void;
}

/** How a node ended. */
export type NodeOutcome =
  | { readonly type: "skipped" }
  | { readonly type: "completed"; readonly output: unknown; readonly case?: string | undefined }
  | { readonly type: "failed"; readonly error: NodeError }
  /** Its graph was over before it was. */
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

/** Thrown where a node had begun when its process ended, and may not be executed again: the run is over. */
export class NodeInterrupted extends Error {
  override readonly name = "NodeInterrupted";
  readonly nodeId: string;

  constructor(nodeId: string) {
    super(`Node ${nodeId} was executing when its process ended, and may not be repeated`);
    this.nodeId = nodeId;
  }
}
