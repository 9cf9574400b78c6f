import type { ports, StoreRetry } from "@portico/core";
import type { ListChanges } from "@portico/core/kit";
import type { AwaitedCallback, LinkedGate, RunTokens } from "../access/run-tokens.ts";
import type { Definition, Graph, GraphNode, JsonSchema } from "../definition/definition.ts";
import type { ExpressionScope } from "../expressions/expression.ts";
import type { EvaluateBeside } from "../expressions/expression-thread.ts";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";
import type { FilesOfRun } from "../files/node-files.ts";
import type { Answers } from "../runs/answers.ts";
import type { Callbacks } from "../runs/callbacks.ts";
import type { Gates } from "../runs/gates.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import type { LiveRun } from "../runs/live-runs.ts";
import type { RunRecord } from "../runs/run-record.ts";
import type { EarlierNodes } from "./earlier-nodes.ts";
import type { ReusedResults } from "./take-over.ts";
import type { Deadline } from "./deadline.ts";
import type { OpenGates } from "./open-gates.ts";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";

/** One execution of a run: the parts that all its nodes share. */
export interface Running {
  readonly context: ports.WorkContext;
  readonly definition: Definition;
  readonly record: RunRecord;
  readonly live: LiveRun;
  /** The values of the run that expressions can name. */
  readonly scope: Pick<ExpressionScope, "parameters" | "run" | "secrets" | "derived">;
  /** Knows the values that may not be shown, or stored in plain form. */
  readonly secrecy: RunSecrecy;
  readonly deadline: Deadline;
  readonly openGates: OpenGates;
  /** How calls of stores are retried, so that a run does not fail if a store is unavailable. */
  readonly storeRetry: StoreRetry;
  /** Results that earlier executions finished, and that this one may not reach. */
  readonly earlier: EarlierNodes;
  /** Set for a run that resumes another: the results that it takes over. */
  readonly reused?: ReusedResults | undefined;
  /** Undefined without storage for files. */
  readonly files: FilesOfRun | undefined;
  readonly services: RunnerServices;
}

/** The services that nodes use outside their run. */
export interface RunnerServices {
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly usage: ports.Usage | undefined;
  readonly answers: Answers;
  readonly gates: Gates;
  readonly gateChanges: ListChanges;
  readonly callbacks: Callbacks;
  /** What people and services reach from outside. Without a public address, no gate has a link, and no callback an address. */
  readonly addresses: {
    readonly publicUrl: string | undefined;
    readonly approvals: RunTokens<LinkedGate>;
    readonly callbacks: RunTokens<AwaitedCallback>;
  };
  /** The service's built-in kinds of nodes, by type. */
  readonly kinds: ReadonlyMap<string, NodeKind>;
  /** All other node types. */
  readonly nodes: ReadonlyMap<string, ports.WorkflowNode>;
  readonly evaluateBeside: EvaluateBeside;
  /** Set if agents are configured. */
  readonly turns: ports.BackgroundTurns | undefined;
  /** The user on whose behalf a run's agents work, if no other user is known. */
  owner(signal: AbortSignal): Promise<string | undefined>;
  /** Starts a run for a node. The same id always means the same run. Throws NodeFailed if the run cannot be started. */
  startChild(child: ChildRun): Promise<void>;
  /** The schema of a deployed workflow's parameters. */
  parametersOf(workflowId: string): JsonSchema | undefined;
  cancelRun(runId: string, reason: string): Promise<void>;
  /** The files of a run that is executed, as long as `held` holds. Undefined without storage for files. */
  filesOf(run: RunRecord, held: ports.Write, secrecy: RunSecrecy): FilesOfRun | undefined;
}

export interface ChildRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly parameters: unknown;
  readonly parent: RunRecord;
  readonly nodeId: string;
  /** Whether it is started anew in a run that resumes another. Otherwise, it resumes the run that the node started there. */
  readonly isAnew: boolean;
  /** The attempt of the node that starts it. */
  readonly attempt: number;
  /** The maximum number of attempts of the node. */
  readonly attempts: number;
  /** The paths of the outputs that the node declares as secret. */
  readonly sensitive?: SensitivePaths | undefined;
  /** Knows the values of the parent that may not be stored in plain form. */
  readonly secrecy: RunSecrecy;
}

/** The context in which a graph is executed: the graph of the definition, or of a `map` or `loop` node. */
export interface Frame {
  /** The prefix of its nodes' ids: `""`, `summarize[3].`. */
  readonly prefix: string;
  /** The results of nodes that expressions can name. It grows as nodes end. */
  readonly nodes: Record<string, { readonly status: string; readonly output?: unknown; readonly error?: NodeError }>;
  readonly item?: unknown;
  readonly index?: number | undefined;
  readonly previous?: unknown;
  /** In `onFailure`: why the run failed. */
  readonly failure?: unknown;
  /** In `retry.if`: why the last attempt failed. */
  readonly error?: unknown;
  /** In the body of a gate's notification. */
  readonly gate?: unknown;
  /** In the body of a callback's request. */
  readonly callback?: unknown;
  /** Maximum milliseconds of a wait. Default: the rest of the run's time. */
  left?(): number;
  /** Aborts when the graph ends while some nodes still run: another node failed, or the run's time has elapsed. */
  readonly signal: AbortSignal;
  /** Called for each node of the graph that has completed. */
  completed?(): void;
}

/** A kind of node that controls a run: its rules, and how the runner executes such a node. */
export interface NodeKind extends ports.NodeRules {
  /** Keys of `with` that are not evaluated when the node starts. */
  readonly later?: ReadonlySet<string> | undefined;
  /** Whether it can wait so long that the engine parks the run. */
  readonly waits?: boolean | undefined;
  /** The places of its evaluated values that are always secret. */
  secretInputs?(inputs: Readonly<Record<string, unknown>>, services: RunnerServices): SensitivePaths | undefined;
  /** Throws NodeFailed, AttemptsFailed and NodeInterrupted. */
  play(play: NodePlay): Promise<NodeResult>;
}

/** One node during its execution. */
export interface NodePlay {
  readonly running: Running;
  readonly node: GraphNode;
  /** The id with its place inside `map` and `loop`: `summarize[3].model`. */
  readonly nodeId: string;
  readonly frame: Frame;
  /** Its evaluated values. */
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Maximum milliseconds of a wait: the node wakes when its time, or the run's time, has elapsed. */
  left(): number;
  readonly playGraph: PlayGraph;
}

/** Executes the nodes of a graph in a frame. */
export type PlayGraph = (running: Running, graph: Graph, frame: Frame) => Promise<GraphOutcome>;

/** The result of a node, with the facts for events and history. */
export interface NodeResult {
  readonly output: unknown;
  readonly case?: string | undefined;
  readonly attempts: number;
  /** Milliseconds since 1970, if the times were stored. */
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
  /** The signal of its frame aborted it from outside. */
  | { readonly type: "aborted" };

/** Everything that expressions of a frame can name. `results`: see ExpressionScope. */
export function scopeOf(
  { scope }: Running,
  { nodes, item, index, previous, failure, error, gate, callback }: Frame,
  results?: ExpressionScope["results"],
): ExpressionScope {
  // Each node makes one. A copy with `...` was among the most expensive functions of a short run.
  const { parameters, run, secrets, derived } = scope;
  return { parameters, run, secrets, derived, nodes, item, index, previous, failure, error, gate, callback, results };
}

/**
 * Whether the graph of a frame ended while nodes of it still ran, so that they end now, too. False if the run is stopped or parked: a later
 * execution continues its nodes. A run can also be parked while its nodes end, because the engine sees only their waits.
 */
export function isWoundUp({ context }: Pick<Running, "context">, { signal }: Pick<Frame, "signal">): boolean {
  return signal.aborted && !(context.signal.aborted && signal.reason === context.signal.reason);
}
