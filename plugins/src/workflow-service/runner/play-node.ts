import { ports } from "@portico/core";
import { ExpressionFailed } from "../definition/expression.ts";
import type { GraphNode } from "../definition/definition.ts";
import { ERROR_CHARACTERS } from "../limits.ts";
import type { NodeError } from "../runs/ledger-entry.ts";
import { insist } from "./insist.ts";
import { assertSize, type NodePlay, playAttempts } from "./play-attempts.ts";
import { type Frame, type NodeOutcome, NodeInterrupted, type Running, scopeOf } from "./running.ts";
import { shapes } from "./shapes.ts";

/** What a node came to, with what is told of it. */
export interface NodeResult {
  readonly output: unknown;
  readonly case?: string | undefined;
  readonly attempts: number;
  /** Milliseconds since 1970, where they were remembered. */
  readonly startedAt?: number | undefined;
  readonly endedAt?: number | undefined;
}

/** Thrown by what plays a node: it failed after so many attempts. */
export class AttemptsFailed extends Error {
  override readonly name = "AttemptsFailed";
  readonly error: NodeError;
  readonly attempts: number;

  constructor(error: NodeError, attempts: number) {
    super(error.message);
    this.error = error;
    this.attempts = attempts;
  }
}

/**
 * Plays one node of a graph, from its `if` to its last attempt, and tells the ledger. What goes wrong in the node is its outcome. Rejects with
 * NodeInterrupted, and with the reason with which the work's own signal aborted.
 */
export async function playNode(running: Running, node: GraphNode, frame: Frame): Promise<NodeOutcome> {
  const { live, mask, context, world } = running;
  const { ledger } = live;
  const nodeId = `${frame.prefix}${node.id}`;
  const about = { nodeId, type: node.rules.type, name: node.name };
  let begun = world.clock.now();
  let inputs: Readonly<Record<string, unknown>> | undefined;
  const end = (status: "completed" | "failed" | "cancelled", result: Partial<NodeResult>, error?: NodeError) => {
    const startedAt = result.startedAt ?? begun;
    const endedAt = result.endedAt ?? world.clock.now();
    ledger.add({
      ...{ kind: "end", ...about, status, attempts: result.attempts ?? 1 },
      ...(inputs && { inputs: mask(inputs) }),
      ...("output" in result && { outputs: mask(result.output) }),
      ...(error && { error }),
      startedAt: new Date(startedAt).toISOString(),
      completedAt: new Date(endedAt).toISOString(),
      durationMs: Math.max(0, endedAt - startedAt),
    });
  };
  try {
    const scope = scopeOf(running, frame);
    if (node.condition && node.condition.evaluate(scope) !== true) return { type: "skipped" };
    begun = Date.parse(ledger.start({ kind: "start", ...about, at: new Date(begun).toISOString() }));
    const shape = shapes[node.rules.type];
    inputs = fill(node, scope, shape?.later);
    const result = shape
      ? await sized(withinTime(running, { node, nodeId, frame, inputs, begun }, shape.play))
      : await playAttempts({ running, node, nodeId, frame, inputs, left: () => running.deadline.left() });
    end("completed", result);
    // Where the run is stopped meanwhile, what is held is written, or comes again.
    await insist(running, () => ledger.room()).catch(() => {});
    return { type: "completed", output: result.output, case: result.case };
  } catch (thrown) {
    if (thrown instanceof NodeInterrupted || isInterrupted(thrown)) {
      end("failed", {}, { code: "process_restart", message: "The process ended while the node was executing" });
      throw thrown instanceof NodeInterrupted ? thrown : new NodeInterrupted(nodeId);
    }
    if (context.signal.aborted) {
      if (context.signal.reason instanceof ports.WorkCancelled) end("cancelled", {});
      throw context.signal.reason;
    }
    if (frame.signal.aborted) {
      end("cancelled", {});
      return { type: "aborted" };
    }
    const error = boundedError(toNodeError(running, nodeId, thrown), mask);
    end("failed", { attempts: thrown instanceof AttemptsFailed ? thrown.attempts : 1 }, error);
    return { type: "failed", error };
  }
}

/** Plays a shape; the whole of it is what a node's `timeout` limits then. Throws NodeFailed when the time is over. */
async function withinTime(
  running: Running,
  { begun, ...played }: Omit<NodePlay, "running" | "left"> & { readonly begun: number },
  play: (play: NodePlay) => Promise<NodeResult>,
): Promise<NodeResult> {
  const { timeoutMs } = played.node;
  const { clock } = running.world;
  if (timeoutMs === undefined) return play({ running, ...played, left: () => running.deadline.left() });
  const { signal } = played.frame;
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  const left = () => Math.max(0, begun + timeoutMs - clock.now());
  const timer = clock.after(left(), () => stop.abort());
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await play({
      ...{ running, ...played, frame: { ...played.frame, signal: stop.signal } },
      left: () => Math.min(left(), running.deadline.left()),
    });
  } catch (thrown) {
    if (!stop.signal.aborted || signal.aborted || running.context.signal.aborted) throw thrown;
    throw new ports.NodeFailed("timeout", "The node took too long");
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", abort);
  }
}

/** What a shape comes to is made of what its nodes came to, and may be larger than they may. */
async function sized(playing: Promise<NodeResult>): Promise<NodeResult> {
  const result = await playing;
  assertSize(result.output);
  return result;
}

/** The node's values filled in, but those that are looked at later. */
function fill(node: GraphNode, scope: ReturnType<typeof scopeOf>, later: ReadonlySet<string> = new Set()) {
  const inputs: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node.with)) {
    if (later.has(key)) continue;
    if (value.kind === "template") inputs[key] = value.template.fill(scope);
    else if (value.kind === "verbatim") inputs[key] = value.value;
    else if (value.kind === "expression") inputs[key] = value.expression.evaluate(scope);
  }
  return inputs;
}

function toNodeError(running: Running, nodeId: string, thrown: unknown): NodeError {
  if (thrown instanceof AttemptsFailed) return thrown.error;
  if (isNodeFailed(thrown)) return { code: thrown.code, message: thrown.message };
  if (thrown instanceof ExpressionFailed) return { code: "expression_failed", message: thrown.message };
  running.world.log.error("A node failed as nobody expected", { runId: running.record.runId, nodeId }, thrown);
  return { code: "node_failed", message: "The node failed unexpectedly; the service's log says why" };
}

/** By name, so that it works across duplicate copies of the package. */
export function isNodeFailed(thrown: unknown): thrown is ports.NodeFailed {
  return thrown instanceof Error && thrown.name === "NodeFailed" && "code" in thrown;
}

function isInterrupted(thrown: unknown): boolean {
  return thrown instanceof ports.StepInterrupted;
}

function boundedError({ code, message }: NodeError, mask: Running["mask"]): NodeError {
  const shown = mask(message);
  return { code, message: shown.length > ERROR_CHARACTERS ? `${shown.slice(0, ERROR_CHARACTERS).toWellFormed()}…` : shown };
}
