import { ports, retryWhileStoreAway } from "@portico/core";
import { type Expression, ExpressionFailed, type ExpressionScope } from "../expressions/expression.ts";
import { holds, assertSize, evaluated } from "./node-values.ts";
import type { GraphNode } from "../definition/definition.ts";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";
import { ERROR_CHARACTERS } from "../contracts/limits.ts";
import type { KeptResult, NodeError } from "../runs/ledger-entry.ts";
import type { Mask } from "../secrecy/mask.ts";
import { AttemptsFailed, isNodeFailed, NodeInterrupted } from "./attempt.ts";
import {
  isWoundUp,
  type Frame,
  type NodeOutcome,
  type NodePlay,
  type NodeResult,
  type PlayGraph,
  type Running,
} from "./running.ts";
import { playAttempts } from "./play-attempts.ts";
import type { ReusedResults } from "./take-over.ts";

/**
 * Executes one node of a graph, from its `if` to its last attempt, and writes to the ledger. Errors of the node are its outcome. `playGraph`
 * executes the nodes inside it. Rejects with NodeInterrupted, or with the abort reason of the work's signal.
 */
export function playNode(running: Running, node: GraphNode, frame: Frame, playGraph: PlayGraph): Promise<NodeOutcome> {
  // The run is not parked while one of its nodes works, although others wait.
  return running.context.branch((context) => playIn({ ...running, context }, node, frame, playGraph));
}

async function playIn(running: Running, node: GraphNode, frame: Frame, playGraph: PlayGraph): Promise<NodeOutcome> {
  const { live, secrecy, context, services } = running;
  const { ledger } = live;
  const nodeId = `${frame.prefix}${node.id}`;
  const about = { nodeId, type: node.rules.type, name: node.name };
  let begun = services.clock.now();
  let inputs: Readonly<Record<string, unknown>> | undefined;
  let secretInputs: SensitivePaths | undefined;
  const end = (
    status: "completed" | "failed" | "cancelled",
    result: Partial<NodeResult>,
    { error, kept }: { readonly error?: NodeError; readonly kept?: StoredResult } = {},
  ) => {
    if (status === "cancelled" && running.earlier.record(nodeId)) return;
    const startedAt = result.startedAt ?? begun;
    const endedAt = result.endedAt ?? services.clock.now();
    ledger.add({
      ...{ kind: "end", ...about, status, attempts: result.attempts ?? 1 },
      ...(inputs && { inputs: secrecy.show(inputs, secretInputs) }),
      ...(kept && { outputs: kept.outputs, kept: kept.kept }),
      ...(error && { error }),
      startedAt: new Date(startedAt).toISOString(),
      completedAt: new Date(endedAt).toISOString(),
      durationMs: Math.max(0, endedAt - startedAt),
    });
  };
  try {
    if (running.reused?.has(nodeId)) return await reusedOutcome(running, running.reused, { node, nodeId });
    const { condition } = node;
    if (condition && !(await evaluated(running, frame, [condition], (scope) => holds(condition, scope))))
      return { type: "skipped" };
    begun = Date.parse(ledger.start({ kind: "start", ...about, at: new Date(begun).toISOString() }));
    const { type } = node.rules;
    const kind = services.kinds.get(type);
    inputs = await evaluated(running, frame, expressionsOf(node, kind?.later), (scope) => fill(node, scope, kind?.later));
    secretInputs = kind?.secretInputs?.(inputs, services);
    if (secretInputs) secrecy.learn(inputs, secretInputs);
    const play = { running, node, nodeId, frame, inputs, playGraph, left: () => frame.left?.() ?? running.deadline.left() };
    const result = kind
      ? await sized(withinTime(play, begun, (played) => kind.play(played)))
      : await playAttempts(services.nodes.get(type)!, play);
    // Stored results of an earlier execution are learned here, too.
    if (node.sensitive) secrecy.learn(result.output, node.sensitive);
    const isPlain = !node.sensitive && secrecy.isIdle;
    end("completed", result, { kept: isPlain ? plainResult(result) : await storedResult(running, node, result) });
    // If the run is stopped during this, buffered entries are written, or are created again later.
    await retryWhileStoreAway(running.storeRetry, () => ledger.room()).catch(() => {});
    return { type: "completed", output: result.output, case: result.case };
  } catch (thrown) {
    if (thrown instanceof NodeInterrupted || isInterrupted(thrown)) {
      const error = { code: "process_restart", message: "The process ended while the node was executing" };
      end("failed", {}, { error });
      throw thrown instanceof NodeInterrupted ? thrown : new NodeInterrupted(nodeId);
    }
    const { signal } = context;
    const isCancelled = signal.reason instanceof ports.WorkCancelled;
    const windsUp = isWoundUp(running, frame);
    if (isCancelled || windsUp) end("cancelled", {});
    if (signal.aborted && (isCancelled || !windsUp)) throw signal.reason;
    if (frame.signal.aborted) return { type: "aborted" };
    const error = boundedError(toNodeError(running, nodeId, thrown), secrecy.mask);
    end("failed", { attempts: thrown instanceof AttemptsFailed ? thrown.attempts : 1 }, { error });
    return { type: "failed", error };
  }
}

/** The result of a node in the form that history has. */
interface StoredResult {
  readonly outputs: unknown;
  readonly kept: KeptResult;
}

function plainResult({ output, case: taken }: NodeResult): StoredResult {
  return { outputs: output, kept: taken === undefined ? {} : { case: taken } };
}

/** Retries while the sealing key is unavailable. */
async function storedResult(running: Running, { sensitive }: GraphNode, result: NodeResult): Promise<StoredResult> {
  const { record, secrecy, storeRetry } = running;
  const { kept } = plainResult(result);
  let outputs: unknown;
  const { hidden } = await retryWhileStoreAway(storeRetry, () => {
    // In the same turn, so that both know the same secrets: otherwise a value could be masked that is not encrypted.
    outputs = secrecy.show(result.output, sensitive);
    return secrecy.toStored(record.runId, result.output, sensitive);
  });
  return { outputs, kept: { ...kept, ...(hidden && { hidden }) } };
}

/** The outcome that a node had in the run that this run resumes. Throws NodeFailed if its secret parts cannot be opened. */
async function reusedOutcome(
  running: Running,
  reused: ReusedResults,
  { node, nodeId }: { readonly node: GraphNode; readonly nodeId: string },
): Promise<NodeOutcome> {
  const { record, secrecy, storeRetry } = running;
  const { status, outputs, error, kept } = (await retryWhileStoreAway(storeRetry, () => reused.find(nodeId)))!;
  if (status === "skipped") return { type: "skipped" };
  if (status !== "completed") return { type: "failed", error: error! };
  const opening = { value: outputs ?? null, hidden: kept?.hidden };
  const output = await retryWhileStoreAway(storeRetry, () => secrecy.open(record.runId, opening));
  if (node.sensitive) secrecy.learn(output, node.sensitive);
  return { type: "completed", output, case: kept?.case };
}

/** Executes a node whose `timeout` limits the whole node. Throws NodeFailed when the time has elapsed. */
async function withinTime(whole: NodePlay, begun: number, play: (play: NodePlay) => Promise<NodeResult>): Promise<NodeResult> {
  const { running, node, frame } = whole;
  const { timeoutMs } = node;
  if (timeoutMs === undefined) return play(whole);
  const { clock } = running.services;
  const { signal } = frame;
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  const left = () => Math.max(0, begun + timeoutMs - clock.now());
  const timer = clock.after(left(), () => stop.abort());
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await play({
      ...whole,
      frame: { ...frame, signal: stop.signal },
      left: () => Math.min(left(), whole.left()),
    });
  } catch (thrown) {
    if (!stop.signal.aborted || signal.aborted || running.context.signal.aborted) throw thrown;
    throw new ports.NodeFailed("timeout", "The node took too long");
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", abort);
  }
}

/** Checks the size again, because the output of a kind combines the outputs of its nodes. */
async function sized(playing: Promise<NodeResult>): Promise<NodeResult> {
  const result = await playing;
  assertSize(result.output);
  return result;
}

/** The evaluated values of the node, except those that are evaluated later. */
function fill(node: GraphNode, scope: ExpressionScope, later: ReadonlySet<string> = new Set()) {
  const inputs: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node.with)) {
    if (later.has(key)) continue;
    if (value.kind === "template") inputs[key] = value.template.fill(scope);
    else if (value.kind === "verbatim") inputs[key] = value.value;
    else if (value.kind === "expression") inputs[key] = value.expression.evaluate(scope);
  }
  return inputs;
}

/** The expressions that `fill` evaluates, in its order. */
function* expressionsOf(node: GraphNode, later: ReadonlySet<string> = new Set()): Generator<Expression> {
  for (const [key, value] of Object.entries(node.with)) {
    if (later.has(key)) continue;
    if (value.kind === "template") yield* value.template.expressions;
    else if (value.kind === "expression") yield value.expression;
  }
}

function toNodeError(running: Running, nodeId: string, thrown: unknown): NodeError {
  if (thrown instanceof AttemptsFailed) return thrown.error;
  if (isNodeFailed(thrown)) return { code: thrown.code, message: thrown.message };
  if (thrown instanceof ExpressionFailed) return { code: "expression_failed", message: thrown.message };
  running.services.telemetry.log.error("A node failed unexpectedly", { runId: running.record.runId, nodeId }, thrown);
  return { code: "node_failed", message: "The node failed unexpectedly; the service's log says why" };
}

function isInterrupted(thrown: unknown): boolean {
  return thrown instanceof ports.StepInterrupted;
}

function boundedError({ message, ...error }: NodeError, mask: Mask): NodeError {
  const shown = mask(message);
  return { ...error, message: shown.length > ERROR_CHARACTERS ? `${shown.slice(0, ERROR_CHARACTERS).toWellFormed()}…` : shown };
}
