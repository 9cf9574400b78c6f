import { setImmediate as nextTurn } from "node:timers/promises";
import type { NodePlay } from "../play-attempts.ts";
import { AttemptsFailed, type NodeResult } from "../play-node.ts";
import { scopeOf } from "../running.ts";
import { innerGraph, innerResult } from "./inner.ts";

const ITERATIONS = 100;

/** Plays its nodes again and again, until `until` holds or the iterations are over; each sees the result of the one before. */
export async function playLoop(play: NodePlay): Promise<NodeResult> {
  const { running, node, inputs, frame } = play;
  const { until } = node.with;
  const inner = innerGraph(play, frame.signal);
  const most = Number(inputs["maxIterations"] ?? ITERATIONS);
  let previous: unknown = null;
  for (let index = 0; index < most; index++) {
    const { frame: played, outcome } = await inner({ index, previous });
    if (outcome.type === "failed") throw new AttemptsFailed(outcome.error, 1);
    frame.signal.throwIfAborted();
    previous = innerResult(play, played);
    const last = { ...played, previous };
    if (until?.kind === "expression" && until.expression.evaluate(scopeOf(running, last)) === true) break;
    await nextTurn();
  }
  return { output: previous, attempts: 1 };
}
