import { orAborted, ports } from "@portico/core";
import * as v from "valibot";
import type { GraphNode } from "../definition/definition.ts";
import { workName } from "../runs/work-name.ts";
import { AttemptsFailed, isNodeFailed, type NodeResult } from "./play-node.ts";
import type { Frame, Running } from "./running.ts";

export interface NodePlay {
  readonly running: Running;
  readonly node: GraphNode;
  readonly nodeId: string;
  readonly frame: Frame;
  /** Its values, filled in. */
  readonly inputs: Readonly<Record<string, unknown>>;
  /** How long a wait may be at most, so that somebody is there when the node's time, or the run's, is over. */
  left(): number;
}

/** What an attempt is remembered by: also its times, so that history says the same after a resume. */
export type Attempt =
  | {
      readonly isOk: true;
      readonly output: unknown;
      readonly startedAt?: number | undefined;
      readonly endedAt?: number | undefined;
    }
  | { readonly isOk: false; readonly code: string; readonly message: string; readonly isFinal: boolean };

const MOST_FAULTS = 5;

/** Does a node's work until an attempt succeeds, each attempt a step of the engine. Throws NodeFailed and AttemptsFailed. */
export async function playAttempts(play: NodePlay): Promise<NodeResult> {
  const { running, node, nodeId } = play;
  const { idempotent } = node;
  const type = running.world.nodes.get(node.rules.type)!;
  const input = parseInput(type, play.inputs);
  const isRepeatable = idempotent ?? (typeof type.repeatable === "function" ? type.repeatable(input) : type.repeatable);
  return withRetries(play, async (attempt) => {
    const work = (signal: AbortSignal) => attemptOnce(play, { type, input, attempt, signal });
    return type.pure
      ? work(play.frame.signal)
      : running.context.step<Attempt>(workName(nodeId, `#${attempt}`), work, { repeatable: isRepeatable });
  });
}

/** Tries until it goes well, as often and with such pauses as the node says. Throws AttemptsFailed. */
export async function withRetries(play: NodePlay, once: (attempt: number) => Promise<Attempt>): Promise<NodeResult> {
  const { running, node, nodeId, frame } = play;
  const { attempts, delayMs, factor, maxDelayMs } = node.retry;
  let delay = delayMs;
  for (let attempt = 1; ; attempt++) {
    const result = await once(attempt);
    if (result.isOk) {
      return { output: result.output, attempts: attempt, startedAt: result.startedAt, endedAt: result.endedAt };
    }
    const { code, message, isFinal } = result;
    if (isFinal || attempt >= attempts) throw new AttemptsFailed({ code, message }, attempt);
    const pause = Math.min(delay, maxDelayMs, play.left());
    await orAborted(running.context.sleep(workName(nodeId, `#${attempt} pause`), pause), frame.signal);
    delay = Math.min(delay * factor, maxDelayMs);
  }
}

/** What a node is given, by its type's schema. Throws NodeFailed naming the places, and no values. */
export function parseInput(rules: ports.NodeRules, inputs: Readonly<Record<string, unknown>>): unknown {
  const parsed = v.safeParse(rules.input, inputs);
  if (parsed.success) return parsed.output;
  const faults = parsed.issues
    .slice(0, MOST_FAULTS)
    .map((issue) => `with.${v.getDotPath(issue) ?? ""}: expected ${issue.expected ?? "another value"}`);
  throw new ports.NodeFailed("invalid_input", faults.join("; "), { retryable: false });
}

async function attemptOnce(
  { running, node, nodeId, frame }: NodePlay,
  given: { readonly type: ports.WorkflowNode; readonly input: unknown; readonly attempt: number; readonly signal: AbortSignal },
): Promise<Attempt> {
  const { type, input, attempt, signal } = given;
  const { clock, log } = running.world;
  const { runId, workflowId, userId, depth: workflowDepth = 0 } = running.record;
  const startedAt = clock.now();
  const stop = new AbortController();
  const timer = node.timeoutMs === undefined ? undefined : clock.after(node.timeoutMs, () => stop.abort());
  const isPure = type.pure ?? false;
  try {
    const stopped = isPure ? signal : AbortSignal.any([signal, frame.signal, stop.signal]);
    const working = type.run({ input, step: { runId, workflowId, nodeId, attempt, userId, workflowDepth }, signal: stopped });
    // A node that does not listen holds up neither its run nor the process.
    const output = await orAborted(working, stopped);
    assertSize(output);
    return { isOk: true, output: output ?? null, startedAt, endedAt: clock.now() };
  } catch (thrown) {
    // Of the run's own making: no outcome of the attempt.
    if (signal.aborted || frame.signal.aborted) throw thrown;
    if (stop.signal.aborted) return { isOk: false, code: "timeout", message: "The attempt took too long", isFinal: false };
    if (isNodeFailed(thrown)) return { isOk: false, code: thrown.code, message: thrown.message, isFinal: !thrown.retryable };
    log.error("A node failed as nobody expected", { runId, nodeId }, thrown);
    return {
      isOk: false,
      code: "node_failed",
      message: "The node failed unexpectedly; the service's log says why",
      isFinal: false,
    };
  } finally {
    timer?.cancel();
  }
}

/** Throws NodeFailed for what is no node's output any more. */
export function assertSize(output: unknown): void {
  if (Buffer.byteLength(JSON.stringify(output) ?? "") <= ports.NODE_OUTPUT_BYTES) return;
  throw new ports.NodeFailed("output_too_large", `The output is over ${ports.NODE_OUTPUT_BYTES} bytes`, { retryable: false });
}
