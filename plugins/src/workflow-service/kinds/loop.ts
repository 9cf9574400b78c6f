import { setImmediate as nextTurn } from "node:timers/promises";
import { jsonObject, ports } from "@portico/core";
import * as v from "valibot";
import { holds } from "../definition/holds.ts";
import { LOOP_EXHAUSTED } from "../runs/ledger-entry.ts";
import { assertSize } from "../runner/assert-size.ts";
import { innerFailed } from "../runner/attempts-failed.ts";
import { evaluated } from "../runner/evaluated.ts";
import { innerGraph, innerResult } from "../runner/inner-graph.ts";
import { parseInput } from "../runner/parse-input.ts";
import type { NodeKind } from "../runner/running.ts";

/** Default maximum of iterations for a loop that has `until`. */
const DEFAULT_ITERATIONS = 100;

/** Values that are evaluated when the node starts. The rest of `with` is its graph, and the expressions after each turn. */
const given = {
  maxIterations: v.optional(
    v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(1, "A loop turns 1 to 10,000 times"),
      v.maxValue(10_000, "A loop turns 1 to 10,000 times"),
      v.description("Maximum number of iterations; default 100 if `until` is set."),
    ),
    DEFAULT_ITERATIONS,
  ),
  onExhausted: v.optional(
    v.pipe(
      v.picklist(["fail", "complete"]),
      v.description(
        "What happens if `until` is still false after the last iteration: the node fails with `loop_exhausted` (default), or completes with the last result.",
      ),
    ),
    "fail",
  ),
};
const filledIn = v.strictObject(given);

/**
 * Executes its nodes repeatedly, until `until` is true or the maximum is reached. Each iteration has the result of the previous one. With `until`,
 * the maximum is a failure by default.
 */
export const loopKind: NodeKind = {
  type: "loop",
  input: v.strictObject({
    until: v.optional(
      v.pipe(v.unknown(), v.description("A CEL expression, evaluated after each iteration: the loop ends when it is true.")),
    ),
    ...given,
    nodes: v.pipe(jsonObject, v.description("Nodes that run in each iteration: a separate graph.")),
    result: v.pipe(
      v.unknown(),
      v.description(
        "Result of each iteration: an expression. It is `previous` in the next iteration. The last result is the node's output.",
      ),
    ),
  }),
  keys: { until: "expression", nodes: "graph", result: "expression" },
  hasPrevious: true,
  later: new Set(["until", "result"]),
  check({ until, maxIterations, onExhausted }) {
    if (until !== undefined) return [];
    const faults: ports.NodeFault[] = [];
    if (maxIterations === undefined)
      faults.push({ path: [], message: "A loop says when it ends: `until`, `maxIterations`, or both" });
    if (onExhausted !== undefined) faults.push({ path: ["onExhausted"], message: "`onExhausted` is for a loop with `until`" });
    return faults;
  },
  repeatable: true,
  async play(play) {
    const { running, node, inputs, frame } = play;
    const { until } = node.with;
    const inner = innerGraph(play, frame.signal);
    const { maxIterations, onExhausted } = parseInput(filledIn, inputs);
    let previous: unknown = null;
    for (let index = 0; index < maxIterations; index++) {
      const { frame: played, outcome } = await inner({ index, previous });
      if (outcome.type === "failed") throw innerFailed(outcome);
      frame.signal.throwIfAborted();
      previous = await innerResult(play, played);
      // The result goes to the next iteration. Without this check, each iteration could double it or add a level.
      assertSize(previous);
      const last = { ...played, previous };
      if (until?.kind === "expression") {
        const { expression } = until;
        if (await evaluated(running, last, [expression], (scope) => holds(expression, scope)))
          return { output: previous, attempts: 1 };
      }
      await nextTurn();
    }
    if (until && onExhausted === "fail")
      throw new ports.NodeFailed(LOOP_EXHAUSTED, exhausted(maxIterations), { retryable: false });
    return { output: previous, attempts: 1 };
  },
};

function exhausted(iterations: number): string {
  return `\`until\` was still false after ${iterations === 1 ? "1 iteration" : `${iterations} iterations`}`;
}
