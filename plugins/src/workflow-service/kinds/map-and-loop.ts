import { setImmediate as nextTurn } from "node:timers/promises";
import { jsonObject, ports } from "@portico/core";
import * as v from "valibot";
import { AttemptsFailed } from "../runner/attempt.ts";
import { parseInput, assertSize, evaluated, filledIn, holds } from "../runner/node-values.ts";
import type { NodeKind, Frame, GraphOutcome, NodePlay } from "../runner/running.ts";
import { LOOP_EXHAUSTED } from "../runs/ledger-entry.ts";

/** Values that are evaluated when the node starts. The rest of `with` is its graph, and the expressions for each element. */
const mapValues = {
  items: v.pipe(
    v.array(v.unknown()),
    v.description("The list: an expression. `item` is the present element, `index` its position."),
  ),
  concurrency: v.optional(
    v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(1, "Of 1 to 64 elements at a time"),
      v.maxValue(64, "Of 1 to 64 elements at a time"),
      v.description("Number of elements that are processed at the same time; default 8."),
    ),
    8,
  ),
};
const mapInput = v.strictObject(mapValues);

/** Maximum number of items that start in one turn of the event loop, because many quick items would block it. */
const ITEMS_PER_TURN = 32;

/** Executes its nodes for each item, in order, several at a time. If an item fails, the node fails. */
export const mapKind: NodeKind = {
  type: "map",
  input: v.strictObject({
    ...mapValues,
    nodes: v.pipe(jsonObject, v.description("Nodes that run for each element: a separate graph.")),
    result: v.pipe(
      v.unknown(),
      v.description("Result of each element: an expression. The node's output is the list of results."),
    ),
  }),
  keys: { items: "expression", nodes: "graph", result: "expression" },
  later: new Set(["result"]),
  // The nodes inside store the results of single items.
  repeatable: true,
  async play(play) {
    const { inputs, frame } = play;
    const { items, concurrency } = parseInput(mapInput, inputs);
    const over = new AbortController();
    const abort = () => over.abort(frame.signal.reason);
    frame.signal.addEventListener("abort", abort, { once: true });
    const inner = innerGraph(play, over.signal);
    const results: unknown[] = Array.from({ length: items.length }, () => null);
    let next = 0;
    // All workers share a turn: if one waited for the next turn alone, the others would go on without a pause.
    let startedInTurn = 0;
    let turn: Promise<void> | undefined;
    let failure: AttemptsFailed | undefined;
    // If another item has failed, its failure is the node's.
    const unlessOver = (error: unknown): void => {
      if (!over.signal.aborted) throw error;
    };
    const work = async (): Promise<void> => {
      while (next < items.length && !over.signal.aborted) {
        if (startedInTurn === ITEMS_PER_TURN) {
          await (turn ??= nextTurn().then(() => {
            startedInTurn = 0;
            turn = undefined;
          }));
          continue;
        }
        startedInTurn++;
        const index = next++;
        const { frame: played, outcome } = await inner({ item: items[index], index });
        if (outcome.type === "completed") results[index] = await innerResult(play, played).catch(unlessOver);
        else if (outcome.type === "failed") {
          failure ??= innerFailed(outcome);
          over.abort();
        }
      }
    };
    try {
      const workers = Array.from({ length: Math.min(concurrency, items.length) }, () =>
        work().catch((error: unknown) => {
          over.abort(error);
          throw error;
        }),
      );
      const thrown = (await Promise.allSettled(workers)).find((worker) => worker.status === "rejected");
      if (thrown) throw thrown.reason;
    } finally {
      frame.signal.removeEventListener("abort", abort);
    }
    if (failure) throw failure;
    frame.signal.throwIfAborted();
    return { output: results, attempts: 1 };
  },
};

/** Default maximum of iterations for a loop that has `until`. */
const DEFAULT_ITERATIONS = 100;

/** Values that are evaluated when the node starts. The rest of `with` is its graph, and the expressions after each turn. */
const loopValues = {
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
const loopInput = v.strictObject(loopValues);

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
    ...loopValues,
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
    const { maxIterations, onExhausted } = parseInput(loopInput, inputs);
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

/** Executes the nodes inside a `map` or `loop` once. They have their own frame, and their expressions can also name the surrounding nodes. */
function innerGraph(
  { running, node, nodeId, frame, playGraph }: NodePlay,
  signal: AbortSignal,
): (seen: Pick<Frame, "item" | "index" | "previous">) => Promise<{ readonly frame: Frame; readonly outcome: GraphOutcome }> {
  const { nodes } = node.with;
  if (nodes?.kind !== "graph") throw new TypeError(`Node ${nodeId} has no nodes`);
  return async (seen) => {
    const { completed: _completed, ...outer } = frame;
    const inside: Frame = { ...outer, ...seen, prefix: `${nodeId}[${seen.index}].`, nodes: { ...frame.nodes }, signal };
    return { frame: inside, outcome: await playGraph(running, nodes.graph, inside) };
  };
}

/** `result` of one execution; null if the node has no `result`. Throws ExpressionFailed and the signals' reasons. */
async function innerResult({ running, node }: NodePlay, frame: Frame): Promise<unknown> {
  const { result } = node.with;
  if (result?.kind === "expression") {
    const { expression } = result;
    return evaluated(running, frame, [expression], (scope) => expression.evaluate(scope));
  }
  return result?.kind === "template" ? filledIn(running, frame, result.template) : null;
}

/** The failure of a `map` or `loop`: the error of the innermost node that failed, with its id. */
function innerFailed({ error, nodeId }: GraphOutcome & { readonly type: "failed" }): AttemptsFailed {
  return new AttemptsFailed({ nodeId, ...error }, 1);
}
